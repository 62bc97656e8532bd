"""What an earlier version left goes on with this one: in every store, and at the terminal."""

import json
import os
import re

import pytest
from langgraph.types import Command
from typer.testing import CliRunner

from old_storage import FORMATS, KINDS, PLANS, TEAM, lay_out
from postgres import fresh_database
from replan import Approval, open_storage, run, waiting_for
from replan.assembly.graphs import team_graph
from replan.cli.main import app

OVER = {"over": "completed", "question": "waiting", "approval": "waiting", "killed": "interrupted"}


STORES = ("sqlite", "postgres")


def samples():
    """All of the oldest format; of each later one, both kinds and both stores, in turns."""
    kinds = list(KINDS)
    oldest = [(FORMATS[0], kind, store) for kind in kinds for store in STORES]
    turns = ((number, kinds[number % 2], STORES[number // 2 % 2]) for number in FORMATS[1:-1])
    return [*oldest, *turns, *((FORMATS[-1], *each) for each in zip(kinds, STORES, strict=True))]


@pytest.fixture(
    scope="module", params=samples(), ids=lambda sample: f"{sample[2]}-{sample[1]}-{sample[0]}"
)
def sample(request):
    return request.param


@pytest.fixture(scope="module")
def kind(sample):
    return sample[1]


@pytest.fixture
def effects(tmp_path, monkeypatch):
    """The steps that were done since the sample was laid out."""
    path = tmp_path / "effects"
    monkeypatch.setenv("EFFECTS", str(path))
    return lambda: [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture(scope="module")
def where(request, tmp_path_factory, sample):
    """A sample; each test goes on with another of its runs."""
    number, kind, store = sample
    if store == "postgres":
        with fresh_database(request.getfixturevalue("postgres_dsn")) as place:
            lay_out(number, kind, place)
            yield place
    else:
        place = str(tmp_path_factory.mktemp("old") / "runs.sqlite")
        lay_out(number, kind, place)
        yield place


async def gone_on(where, kind, title, given):
    """Go on with the run of a title, and give what it was before, its state and its tries."""
    async with open_storage(where, key=KINDS[kind]) as storage:
        graph = team_graph(TEAM, environment=dict(os.environ), storage=storage)
        (record,) = [each for each in await storage.runs.recent(9) if each.title == title]
        config = {"configurable": {"thread_id": record.thread_id}}
        before = await graph.aget_state(config)
        state = (await run(graph, given(before), config=config, run_id=record.run_id)).state
        ledger = await storage.journal.ledger(record.run_id)
        assert len(await storage.journal.results(record.run_id)) == len(PLANS[title])
    # Services know a step by the key that it was begun with, in whatever version.
    assert len({(each.step_id, each.idempotency_key) for each in ledger}) == len(PLANS[title])
    assert all(each.idempotency_key for each in ledger)
    return before, state, [(each.step_id, each.number, each.outcome) for each in ledger]


def texts(state):
    return [result.text for result in state["current_specialist_results"].values()]


async def test_a_run_that_was_over_is_found_and_not_done_again(where, kind, effects):
    before, state, ledger = await gone_on(where, kind, "over", lambda _: None)
    assert before.values["outcome"] == state["outcome"] == "completed"
    assert texts(state) == ["Result 1 from [].", "Result 2 from ['Result 1 from [].']."]
    assert before.values["final_answer"] == state["final_answer"]
    assert ledger == [(1, 1, "done"), (2, 1, "done")]
    assert effects() == []


async def test_a_question_is_answered_and_what_was_done_stays_done(where, kind, effects):
    def answer(before):
        (question,) = waiting_for(before.interrupts)
        assert (question.step_id, question.text) == (2, "Which colour?")
        return Command(resume={question.key: "red"})

    _, state, ledger = await gone_on(where, kind, "question", answer)
    assert state["outcome"] == "completed"
    assert texts(state)[1].startswith("red: Result 2 from ['Result 1")
    assert ledger == [(1, 1, "done"), (2, 1, "waiting"), (2, 2, "done"), (3, 1, "done")]
    assert effects() == [2, 3]


async def test_a_plan_is_approved(where, kind, effects):
    def decide(before):
        asked = waiting_for(before.interrupts)
        assert isinstance(asked, Approval)
        assert asked.approve == before.values["current_plan"].content
        return Command(resume={asked.key: "approve"})

    _, state, _ = await gone_on(where, kind, "approval", decide)
    assert (state["outcome"], effects()) == ("completed", [1, 2])


async def test_a_run_killed_in_mid_round_goes_on_where_it_was(where, kind, effects):
    _, state, ledger = await gone_on(where, kind, "killed", lambda _: None)
    assert state["outcome"] == "completed"
    assert ledger == [(1, 1, "done"), (2, 1, "in doubt"), (2, 2, "done"), (3, 1, "done")]
    assert effects() == [2, 3]


async def test_what_was_remembered_is_found_beside_what_is_remembered_now(
    where, kind, sample, effects
):
    async with open_storage(where, key=KINDS[kind]) as storage:
        old = await storage.store.asearch(("done",), query="step", limit=99)
        # Formats before had no store; the runs of the other tests may have gone on before.
        remembered = {"Dig", "Build", "Prime", "Cut"} if sample[0] >= 7 else set()
        assert {each.key for each in old} >= remembered
        await storage.store.aput(("done", "steps"), "Dig", {"text": "A zebra."})
        (found,) = await storage.store.asearch(("done",), query="zebra")
        assert found.key == "Dig"


def typed(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert "Traceback" not in done.output
    return done


@pytest.mark.parametrize(
    ("number", "kind"),
    [(FORMATS[0], "encrypted"), (FORMATS[-1], "plain")],
    ids=["oldest", "newest"],
)
def test_the_terminal_lists_shows_and_resumes_old_runs(
    number, kind, effects, monkeypatch, tmp_path
):
    where = str(tmp_path / "runs.sqlite")
    lay_out(number, kind, where)
    monkeypatch.setenv("REPLAN_STORAGE", where)
    monkeypatch.setenv("REPLAN_STORAGE_KEY", KINDS[kind] or "")
    lines = map(json.loads, typed("runs", "--json").output.splitlines())
    listed = {each["title"]: each for each in lines}
    assert {title: each["outcome"] for title, each in listed.items()} == OVER
    ids = {title: each["run_id"] for title, each in listed.items()}
    assert re.search(r"\[x\] 2\. .* Build", typed("show", ids["over"]).output)
    assert re.search(r"\[x\] 1\. .* Cut", typed("show", ids["killed"]).output)
    assert "Which colour?" in typed("show", ids["question"]).output
    for title, options in {
        "question": ["--answer", "red"],
        "approval": ["--answer", "approve"],
        "killed": [],
    }.items():
        assert "completed" in typed("resume", ids[title], "--team", TEAM, *options).output
    assert effects() == [2, 3, 1, 2, 2, 3]
    assert "is over" in typed("resume", ids["over"], "--team", TEAM).output
