"""The answer by reference: the host names a step, and its whole result is the answer."""

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from replan import Host, Specialist, Team, open_runtime, run, stream
from replan.base.secrets.known import KNOWN
from replan.events.types import AnswerToken
from replan.state.results import SpecialistResult
from replan.testing import Reply, ScriptedModel

PLAN = "- [ ] 1. Look it up @finder\n- [ ] 2. Write the report @writer (after 1)\n"
GIVEN = {"messages": [("user", "Report.")], "plan": PLAN}
REPORT = "# The report\n\n" + "A line of it, word for word.\n" * 2_000
BY_ITSELF = "The answer of a call of its own."


def naming(step, *, verdict="complete", body=""):
    return f"---\nverdict: {verdict}\nfeedback: It is all there.\nanswer_step: {step}\n---\n{body}"


def team_of(*judgements, report=REPORT, output_type=None, **replies):
    model = ScriptedModel({"feedback": list(judgements), **replies})
    team = Team(
        Host(model, output_type=output_type),
        [
            Specialist("finder", "Finds.", run=lambda _: "Found."),
            Specialist("writer", "Writes.", run=lambda _: report),
        ],
    )
    return model, team


@pytest.mark.parametrize("written", ["2", "step 2", "#2", "步骤 2", "`2`"])
async def test_the_whole_result_of_the_step_is_the_answer_without_another_call(written):
    model, team = team_of(naming(written))
    with model:
        result = await run(team, GIVEN)
    assert (result.outcome, result.text) == ("completed", REPORT)
    assert [call.node for call in model.calls] == ["feedback"]
    assert result.state["current_feedback_result"].answer_step == 2
    assert result.warnings == ()


async def test_it_is_streamed_as_it_is():
    model, team = team_of(naming(2))
    with model:
        events = [event async for event in stream(team, GIVEN)]
    assert "".join(each.text for each in events if isinstance(each, AnswerToken)) == REPORT


async def test_a_result_that_the_state_has_only_an_excerpt_of_is_whole(tmp_path):
    model, team = team_of(naming(2))
    with model:
        async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
            result = await runtime.run(GIVEN)
    assert result.text == REPORT


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        (naming(9), "The plan has no step 9."),
        (naming("1 and 2"), "is not the number of one step"),
        (naming("the last"), "is not the number of one step"),
        (naming(2, body="See step 2."), "an `answer_step` and a body"),
        (naming(2, verdict="continue"), "the verdict is `continue`"),
    ],
)
async def test_what_names_no_single_answer_is_asked_for_again(reply, wrong):
    model, team = team_of(reply, naming(2))
    with model:
        result = await run(team, GIVEN)
    assert (result.outcome, result.text) == ("completed", REPORT)
    assert wrong in model.calls[1].messages[-1].text


async def test_a_number_that_may_be_cut_off_names_nothing():
    cut = Reply("---\nverdict: complete\nanswer_step: 2", finish_reason="length", usage=(100, 50))
    model, team = team_of(cut, "---\nverdict: complete\n---\nIt was step 21.")
    with model:
        result = await run(team, GIVEN)
    assert (result.outcome, result.text) == ("completed", "It was step 21.")
    assert "The reply is incomplete" in model.calls[1].messages[-1].text


async def test_asked_twice_in_vain_the_answer_is_asked_for_by_itself_and_that_is_told():
    model, team = team_of(naming(9), naming(8), final_answer=BY_ITSELF)
    with model:
        result = await run(team, GIVEN)
    assert (result.outcome, result.text) == ("completed", BY_ITSELF)
    (unread,) = result.state["unreadable_replies"]
    assert unread.problem == "The plan has no step 8."
    assert unread.fallback == "the answer is asked for by itself"


@pytest.mark.parametrize("status", ["partial", "failed"])
async def test_a_step_that_did_not_succeed_is_no_answer(status):
    report = SpecialistResult(result=AIMessage(REPORT), status=status, error="Half.")
    model, team = team_of(naming(2), "---\nverdict: complete\n---\nWhat there is.", report=report)
    with model:
        result = await run(team, GIVEN)
    assert "What there is." in result.text
    assert "no single whole result" in model.calls[1].messages[-1].text


async def test_of_a_step_with_two_specialists_no_result_is_the_answer():
    model, team = team_of(naming(1), "---\nverdict: complete\n---\nBoth.")
    given = {**GIVEN, "plan": "- [ ] 1. Look it up @finder @writer\n"}
    with model:
        result = await run(team, given)
    assert result.text == "Both."
    assert "no single whole result" in model.calls[1].messages[-1].text


async def test_a_result_with_a_known_secret_is_no_answer():
    secret = "s3cr3t-value-of-the-team"  # noqa: S105 - of this test
    model, team = team_of(naming(2), "---\nverdict: complete\n---\nNone.", report=f"It is {secret}")
    KNOWN.add([secret])
    try:
        with model:
            result = await run(team, GIVEN)
    finally:
        KNOWN.clear()
    assert result.text == "None."
    assert "holds a secret value" in model.calls[1].messages[-1].text


class Price(BaseModel):
    cents: int


async def test_a_result_of_the_answers_type_is_the_answer_and_its_value():
    model, team = team_of(naming(2), report='{"cents": 120}', output_type=Price)
    with model:
        result = await run(team, GIVEN)
    assert (result.text, result.output) == ('{"cents": 120}', Price(cents=120))
    assert len(model.calls) == 1


async def test_a_result_of_another_type_is_no_answer():
    given = '---\nverdict: complete\n---\n{"cents": 5}'
    model, team = team_of(naming(2), given, output_type=Price)
    with model:
        result = await run(team, GIVEN)
    assert result.output == Price(cents=5)
    assert "cannot be the answer" in model.calls[1].messages[-1].text


async def test_the_offer_is_made_only_where_a_result_could_be_the_answer():
    model, team = team_of(naming(2))
    with model:
        await run(team, GIVEN)
    assert "`answer_step: 2`" in model.calls[0].messages[0].text
    failed = SpecialistResult(result=AIMessage("No."), status="failed", error="No.")
    model, team = team_of("---\nverdict: complete\n---\nNone.", report=failed)
    with model:
        await run(team, {**GIVEN, "plan": "- [ ] 1. Write the report @writer\n"})
    assert "answer_step" not in model.calls[0].messages[0].text
