"""What reads texts of others ends soon, whatever a line in them repeats."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from replan import ExecutionContext, PlanStep, SpecialistResult
from replan.base.texts.bounds import (
    COLUMN_NAME,
    PLAN,
    STEP_ATTRIBUTES,
    STEP_LINE,
    TABLE_COLUMNS,
)
from replan.cli.user_files.plan_text import read_plan_text
from replan.errors import InputError, PlanDocumentError, TeamFileError
from replan.knowledge.read_files import passages_in
from replan.nodes.host.plan_texts import read_plan
from replan.plan.markdown.document import PlanDocument, looks_like_plan
from replan.plan.markdown.overlooked import overlooked
from replan.plan.markdown.seal import fingerprint
from replan.ports.run_context import Folders, using
from replan.prompts.replies.body_stream import BodyStream
from replan.prompts.replies.readings import read_answer, read_feedback, read_specialist, read_think
from replan.state.person.answers import read_decision
from replan.state.team import SpecialistCard
from replan.team.team_file import read_team_file
from replan_local import data_analyst
from replan_local.answer_table import tables_in
from replan_local.expressions import calculated
from replan_local.grammar import parse
from replan_local.host.planning import planned
from replan_local.refusals import CannotAnswerError
from untraced import untraced

# A line is to be read in 10 ms; the rest is for slow machines, and for doors that read it often.
_SECONDS = 0.6
_LONG = 10 * _SECONDS
_TEAM = ("a", "writer")
_CARDS = [SpecialistCard(name=name, intended_use="Works.") for name in _TEAM]
_LINES = {
    "blanks before a bad word": f"- [ ] 1. Do it @a (depends{' ' * 9_000}x)\n",
    "blanks before nothing": f"- [ ] 1. Do it @a (after {' ' * 9_000})\n",
    "blanks between words": f"- [ ] 1. Fetch{' ' * 9_000}it @a\n",
    "blanks before a brief": f"- [ ] 1. x\n\n  foo\n{' ' * 9_000}bar\n",
    "mentions": f"- [ ] 1. x {'@a ' * 3_000}\n",
    "brackets": f"- [ ] 1. x @a {'(optional) ' * 900}\n",
    "phrases": f"- [ ] 1. x @a ({'x, ' * 3_000})\n",
    "orders": f"- [ ] 1. x @a ({'after 1, ' * 1_000})\n",
    "things to write": f"- [ ] 1. x @a (writes {'a, ' * 3_000})\n",
    "names that may end anywhere": f"- [ ] 1. x @a (assigned to: a{'和' * 9_000}\x00)\n",
    "names in a thing to write": f"- [ ] 1. x @a (writes ` `,assigned to: a{'和' * 9_000}\x00)\n",
    "brackets in brackets": f"- [ ] 1. x @a {'(' * 4_500}{')' * 4_500}\n",
    "stress": f"- [ ] {'*' * 9_000}\n",
    "quotes": f"{'> ' * 4_500}\n",
    "lists": f"{'1. ' * 3_000}\n",
    "links": f"{'[' * 9_000}\n",
    "comments": f"- [ ] 1. {'<!-- ' * 1_800}\n",
    "references": f"- [ ] 1. {'&#6' * 3_000}\n",
    "keys": "key:" * 2_250,
    "a fence": f"```{' ' * 9_000}x\n",
    "a rule of a table": f"|a|b|\n{' ' * 9_000}|x\n",
    "arrows": "-> 1 " * 1_800,
}

_LEADS = [
    *("", "- [ ] 1. Do ", "- [ ] 1. Do @a (", "- [ ] 1. Do @a (after ", "- [ ] 1. x\n\n  ", "# a"),
    *("---\ncomplexity: ", "---\ncomplexity: complex\n---\n", "---\n", "{", "[", "```\n"),
    *("<think>", "|a|b|\n|-", "> ", "**", '"', "Step 1: ", "1. x (writes ", "assigned to: a"),
]
_PUMPS = [
    *(" \t\na0-#*_`~<[({}]),.:;|=@'\"\\&!$"),
    *("@a ", "> ", "- ", "- [ ] ", "1. ", "a:", "a: b\n", "](", "<think>", "</think>", "<!--"),
    *("&#6", "&#64;", "x ", "x\n", "\r", "\u200b", "\u3000", "---\n", "```\n", "|-", '{"a":'),
    *("[1,", "after 1, ", "and ", "、", "和", "(optional)", "step 1 ", "-> ", "Step 1: x\n\n"),
]


def _streamed(text: str) -> None:
    stream = BodyStream()
    for at in range(0, len(text), 64):
        stream.feed(text[at : at + 64])


def _thought(text: str) -> object:
    return read_think(f"---\ncomplexity: complex\n---\n{text}", _TEAM)


def _judged(text: str) -> object:
    return read_feedback(f"---\nverdict: continue\nupdate: full\n---\n{text}")


def _refused(read: Callable[..., object], *given: object) -> None:
    with suppress(CannotAnswerError):
        read(*given)


_DOORS: dict[str, Callable[[str], object]] = {
    "a plan": lambda text: PlanDocument.recover(text).plan,
    "a plan's hints": overlooked,
    "a text that may be a plan": looks_like_plan,
    "what a step was asked": lambda text: [
        fingerprint(step) for step in PlanDocument.recover(text).plan.steps
    ],
    "a thought": _thought,
    "a judgement": _judged,
    "a model's plan": lambda text: read_plan(text, _CARDS),
    "an answer": read_answer,
    "a specialist's reply": read_specialist,
    "a stream": _streamed,
    "a table of an answer": lambda text: tables_in(text, ""),
    "a command": lambda text: _refused(parse, text),
    "an expression": lambda text: _refused(calculated, text, {}),
    "a request to the offline host": lambda text: _refused(planned, text, ("a", "b")),
}


@pytest.mark.parametrize("door", _DOORS)
def test_a_line_that_repeats_itself_is_read_soon(door: str) -> None:
    read = _DOORS[door]
    seconds = {line: _least_seconds(lambda text=text: read(text)) for line, text in _LINES.items()}
    assert {line: taken for line, taken in seconds.items() if taken >= _SECONDS} == {}


@given(
    door=st.sampled_from([*_DOORS]),
    lead=st.sampled_from(_LEADS),
    pump=st.lists(st.sampled_from(_PUMPS), min_size=1, max_size=3).map("".join),
    end=st.sampled_from(["", "x", "!\n", ")", " x)", "\n---\n", "\x00"]),
)
def test_whatever_a_text_repeats_it_is_read_soon(door: str, lead: str, pump: str, end: str) -> None:
    # Many lines take their time, but no more than twice as long for twice as many.
    short, long = (lead + pump * (length // len(pump)) + end for length in (2_000, 4_000))
    least = _least_seconds(lambda: _DOORS[door](long))

    assert least < _SECONDS or least < 3 * _least_seconds(lambda: _DOORS[door](short))


@pytest.mark.parametrize("line", _LINES)
def test_a_note_is_read_soon(line: str) -> None:
    # With a zero in it, it would not be read as a text.
    content = f"# a{' ' * 9_000}b\n{_LINES[line]}".replace("\x00", "x").encode()

    assert _least_seconds(lambda: passages_in("evil.md", content)) < _SECONDS


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "a: " + "sk-" * 30_000, "a: &a [" + "*a," * 20_000, "{a: " * 40_000],
    ids=["nesting", "keys", "aliases", "mappings"],
)
def test_a_hostile_team_file_is_refused_soon(tmp_path: Path, text: str) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(text)

    def read() -> None:
        with pytest.raises(TeamFileError):
            read_team_file(path, {})

    # The places of mistakes are found by a reader in Python.
    assert _least_seconds(read, _LONG) < _LONG


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- [ ] 1. x\n" + "a" * PLAN.characters, "characters; at most 4,000,000"),
        ("- [ ] 1. x\n" + "\n" * PLAN.lines, "lines; at most 100,000"),
        ("- [ ] 1. x\n" * (PLAN.items + 1), "20,001 items and headings; at most 20,000"),
        ("- [ ] 1. x\n  " + "a" * PLAN.line, "This line has 200,002 characters; at most 200,000"),
    ],
    ids=["characters", "lines", "items", "line"],
)
def test_a_plan_beyond_a_bound_is_not_read_and_says_which(text: str, reason: str) -> None:
    def read() -> None:
        with pytest.raises(PlanDocumentError, match=reason):
            PlanDocument.parse(text)

    assert _least_seconds(read) < _SECONDS
    assert not PlanDocument.recover(text).plan.steps
    assert not looks_like_plan(text)
    with pytest.raises(InputError):
        read_decision(text)


def test_a_plan_of_a_thousand_steps_with_results_is_within_the_bounds() -> None:
    last = f"- [ ] 1001. Sum up @a (after {', '.join(map(str, range(1, 1001)))})\n"
    result = f"  > {'r' * 600}\n\n  > **Note:** {'n' * 600}\n\n"
    text = "".join(f"- [x] {at}. Find {at} @a\n\n{result}" for at in range(1, 1001)) + last

    assert len(PlanDocument.parse(text).plan.steps[-1].dependencies) == 1000


def test_the_line_of_a_step_beyond_its_bound_is_told_and_nothing_of_it_is_lost() -> None:
    words = "word " * 3_000
    document = PlanDocument.recover(f"- [ ] 7. {words}@a (after 1)\n", known=[1])
    step = document.plan.steps[0]

    assert [(each.line, each.code) for each in document.mistakes] == [(1, "too_large")]
    assert f"at most {STEP_LINE:,} are read" in document.mistakes[0].reason
    assert (step.id, step.description) == (7, words.strip())
    assert (step.assigned_to, step.dependencies) == ("a", (1,))


def test_steps_that_all_wait_for_many_others_are_told_and_read_soon() -> None:
    text = "".join(f"- [ ] {at}. x @a (after 1-900)\n" for at in range(1, 151))

    assert "more than 50,000 dependencies" in str(PlanDocument.recover(text).mistakes)
    assert _least_seconds(lambda: PlanDocument.recover(text).plan, _LONG) < _LONG
    assert _least_seconds(lambda: _thought(text), _LONG) < _LONG


@pytest.mark.parametrize(
    ("door", "lead", "unit"),
    [
        ("a stream", "---\ncomplexity: complex\n---\n", "="),
        ("a text that may be a plan", "", "Step 1: x\n\n"),
        ("a plan's hints", "", "## h\n- [ ] x\n"),
    ],
)
def test_a_text_of_many_parts_is_read_in_time_that_grows_with_it(
    door: str, lead: str, unit: str
) -> None:
    short, long = (lead + unit * (length // len(unit)) for length in (5_000, 20_000))

    least = _least_seconds(lambda: _DOORS[door](long))

    # The time of what looks at each part for each other part would be sixteen times as long.
    assert least < 13 * max(_least_seconds(lambda: _DOORS[door](short)), 0.02)


def test_a_file_that_is_larger_than_any_plan_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_bytes(b"- [ ] 1. x\n" + b"a" * 4 * PLAN.characters)

    with pytest.raises(InputError, match="more than 16,000,000 bytes"):
        read_plan_text(path)


def test_more_attributes_than_a_step_may_have_are_told() -> None:
    mentions = " ".join(f"@a{at}" for at in range(STEP_ATTRIBUTES + 1))

    with pytest.raises(PlanDocumentError, match="more than 100 names and options"):
        PlanDocument.parse(f"- [ ] 1. x {mentions}\n")


def _least_seconds(work: Callable[[], object], bound: float = _SECONDS) -> float:
    """The CPU time of work that is not in a cache; the least of up to three, which share a CPU."""
    least = float("inf")
    with untraced():
        for _ in range(3):
            _forget()
            started = time.process_time()
            work()
            least = min(least, time.process_time() - started)
            if least < bound / 4:
                break
    return least


def _forget() -> None:
    # What is kept is theirs.
    from replan.plan.markdown import reading  # noqa: PLC0415

    reading.forget_readings()
    for module in (reading,):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ([f"c{at}" for at in range(2_001)], "has 2,001 columns, one with"),
        (["a", "b" + " " * 600 + "x"], "a name of 602 characters"),
    ],
    ids=["columns", "name"],
)
async def test_the_head_of_a_table_beyond_its_bound_is_refused(
    tmp_path: Path, head: list[str], reason: str
) -> None:
    values = ",".join("1" for _ in head)
    (tmp_path / "wide.csv").write_text(f"{','.join(head)}\n{values}\n{values}\n")

    result = await _asked(tmp_path, "total a by c1 from wide.csv")

    assert reason in result.error


async def test_the_largest_head_of_a_table_is_read_soon(tmp_path: Path) -> None:
    names = [f"c{at} {'revenue x ' * 50}"[:COLUMN_NAME] for at in range(TABLE_COLUMNS)]
    values = ",".join("1" for _ in names)
    (tmp_path / "wide.csv").write_text(f"{','.join(names)}\n{values}\n{values}\n")

    with untraced():
        started = time.process_time()
        result = await _asked(tmp_path, "total revenue by region from wide.csv")
        seconds = time.process_time() - started

    assert result.is_failed
    assert seconds < _LONG


async def _asked(folder: Path, task: str) -> SpecialistResult:
    step = PlanStep(id=1, description=task)
    context = ExecutionContext(
        task_description=task, plan_step=step, run_id="r", idempotency_key="k"
    )
    with using(folders=Folders(folder, folder)):
        return await data_analyst.run(context, {})
