"""A person has a step of a run done again, or leaves it out: the run goes on, or a new one does."""

from pathlib import Path

import pytest

from replan import Host, InputError, Specialist, Team, open_runtime
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.nodes.final_answer import generate_final_answer
from replan.runs.calling.compiled import team_of
from replan.runs.continued.correcting import Correction, repeated_by
from replan.testing import ScriptedModel, always
from run_pages import Desk, check_run, names_on
from scripts import END

pytestmark = pytest.mark.one_store
PAGE = Path(__file__).with_name("corrections.md")

PLAN = """\
# Letters

- [ ] 1. Address @a
- [ ] 2. Text @a (after 1; retries 0)
- [ ] 3. Send @a (after 2)
- [ ] 4. Aside @a
"""


@pytest.mark.parametrize("name", names_on(PAGE))
@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
async def test_a_correction_comes_to_what_the_page_has(where, name):
    await check_run(PAGE, name, where)


async def test_callbacks_hear_of_a_correction_and_of_each_rest_in_the_order_of_the_log():
    class All:
        hears_tokens = False

        def __init__(self):
            self.heard = []

        async def on_event(self, event):
            self.heard.append(event.type)

        async def on_plan_updated(self, info):
            self.heard.append(f"by {info.by}")

    office, ears = Desk(asks={4}, fails={2}), All()
    async with open_runtime(office.team().replace(callbacks=[ears]), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        await (await runtime.retry(first.run_id, 2, by="anna"))
        await (await runtime.skip(first.run_id, 4))
        new = await (await runtime.skip(first.run_id, 2))
        logged = [
            each.type
            for run_id in (first.run_id, new.run_id)
            async for each in runtime.events(run_id)
        ]
    assert [each for each in ears.heard if not each.startswith("by ")] == logged
    assert logged.count("run_corrected") == 3
    assert logged.count("run_stopped") == 2
    before = ears.heard.index("run_corrected")
    assert ears.heard[before : before + 3] == ["run_corrected", "steps_invalidated", "by person"]


async def test_the_answer_without_a_model_has_what_an_earlier_run_did():
    office = Desk(fails={2})
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        again = await (await runtime.retry(first.run_id, 2, by="anna"))
    assert again.outcome == "partial"
    text = generate_final_answer(again.state)
    assert "## 1. Address\n\ndone 1" in text
    assert "## 4. Aside\n\ndone 4" in text


async def test_a_run_whose_thread_went_on_with_another_is_not_corrected_in_place():
    office = Desk(asks={4})
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN}, thread_id="t")
        await runtime.run({"plan": "- [ ] 1. Else @a\n"}, thread_id="t")
        with pytest.raises(InputError, match="Another run has begun on the thread of this one"):
            await runtime.retry(first.run_id, 2)


async def test_a_run_without_a_plan_has_no_step():
    script = {"think": "---\ncomplexity: simple\n---\nParis."}
    team = Team(host=Host(model=ScriptedModel(script)), specialists=Desk().team().specialists)
    async with open_runtime(team, storage=":memory:") as runtime:
        answered = await runtime.run("The capital of France?")
        with pytest.raises(InputError, match="This run has no plan, so there is no step in it"):
            await runtime.retry(answered.run_id, 1)


def test_code_that_is_not_asynchronous_corrects_a_run_in_the_same_way():
    office = Desk(fails={2})
    with open_runtime(office.team(), storage=":memory:") as runtime:
        first = runtime.run({"plan": PLAN})
        office.fails = set()
        assert runtime.retry(first.run_id, 2).result().outcome == "completed"
        assert runtime.skip(first.run_id, 2).result().outcome == "completed"


@pytest.mark.parametrize("place", [":memory:", "runs.db"])
async def test_a_new_run_keeps_whole_results_and_the_request(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    office, long = Desk(fails={2}), "A long result." * 100

    async def work(context):
        await office.work(context)
        return long if context.plan_step.id == 1 else " ".join(context.inputs.values())

    model = ScriptedModel(
        {"think": f"---\ncomplexity: complex\n---\n{PLAN}", "feedback": always(END)}
    )
    worker = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    team = Team(host=Host(model=model), specialists=[worker])
    async with open_runtime(team, storage=place) as runtime:
        first = await runtime.run("Write to the mayor.")
        second = await (await runtime.skip(first.run_id, 2))
        office.fails = set()
        third = await (await runtime.retry(second.run_id, 2))
        assert third.origin == second.run_id
        assert third.results[2].text == long
        assert [each.text for each in third.state["messages"]] == [
            "Write to the mayor.",
            "The end.",
        ]


@pytest.mark.parametrize("is_sent", [True, False])
async def test_a_job_that_failed_says_whether_anything_was_sent(is_sent, tmp_path):
    def send():
        raise ConnectionError("reset")

    called = {"endpoint": "/payments", "method": "POST", "params": {}}
    pay = JobCommand("pay", needs=[], action="call_api", effects="unsafe", parameters=called)
    if is_sent:
        pay = JobCommand("pay", needs=[], action="send")
    spec = JobSpec(
        "pay",
        slots=[],
        commands=[pay],
        actions=[ActionSpec("send", run=send, effects="unsafe")],
        base_urls=["http://127.0.0.1:9"],
        confirm=False,
    )
    clerk = Specialist("clerk", "Pays.", job=spec)
    team = Team(host=Host(model=ScriptedModel({"feedback": always(END)})), specialists=[clerk])
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": "- [ ] 1. Pay @clerk\n"})
        assert first.outcome == "failed"
        told = (
            r"\(unsafe\) failed, and may have taken effect" if is_sent else r"\(keyed\) was begun"
        )
        with pytest.raises(InputError, match=f"step 1 at @clerk {told}"):
            await runtime.retry(first.run_id, 1)


async def test_of_a_run_that_goes_on_only_a_failure_is_told_that_may_have_acted(tmp_path):
    office = Desk(asks={4}, fails={2})
    async with open_runtime(office.team(effects="unsafe"), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": PLAN})
        view = await runtime.get(first.run_id)
        known = view, team_of(runtime.graph), runtime.storage.log
        # The run itself asks before it repeats the first step; the second follows from it.
        for step in (1, 2):
            told = await repeated_by(Correction(action="retry", step=step), *known)
            assert told == ["step 2 at @a (unsafe) failed, and may have taken effect"]
