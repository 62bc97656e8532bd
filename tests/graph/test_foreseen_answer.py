"""The answer foreseen: a plan names the step that answers, and nothing is left to judge."""

import pytest

from replan import Host, Specialist, SpecialistResult, Team, ask_user, open_runtime, run, stream
from replan.events.types import AnswerToken, FeedbackGenerated
from replan.testing import ScriptedModel

REPORT = "# The report\n\n" + "A line of it, word for word.\n" * 200
BY_MODEL = "---\nverdict: complete\nfeedback: All is there.\n---\nThe host's own words."


def thought(step="2", plan="", complexity="complex"):
    plan = plan or "- [ ] 1. Look it up @finder\n- [ ] 2. Write the report @writer (after 1)\n"
    return f"---\ncomplexity: {complexity}\nreasoning: Two parts.\nanswer_step: {step}\n---\n{plan}"


def team_of(think=None, *, judge="when_needed", find=lambda _: "Found.", write=None, **options):
    model = ScriptedModel({"think": think or thought(), "feedback": BY_MODEL})
    team = Team(
        Host(model, judge=judge, **options.pop("host", {})),
        [
            Specialist("finder", "Finds.", run=find),
            Specialist("writer", "Writes.", run=write or (lambda _: REPORT)),
        ],
        **options,
    )
    return model, team


async def test_the_result_of_the_named_step_is_the_answer_without_a_call():
    model, team = team_of()
    events = [event async for event in stream(team, "Report.")]
    state = (await run(team_of()[1], "Report.")).state
    assert [call.node for call in model.calls] == ["think"]
    assert "".join(each.text for each in events if isinstance(each, AnswerToken)) == REPORT
    (judged,) = [each for each in events if isinstance(each, FeedbackGenerated)]
    told = "Every step succeeded at once, and the plan named step 2 as the one that answers."
    assert (judged.by, judged.text, judged.should_continue) == ("rule", told, False)
    kept = state["current_feedback_result"]
    assert (kept.by, kept.answer_step, kept.final_answer.text) == ("rule", 2, REPORT)
    assert (state["outcome"], state["final_answer"].text) == ("completed", REPORT)
    assert state["usage"].calls == 1


async def test_a_result_of_which_the_state_has_an_excerpt_is_the_answer_whole(tmp_path):
    _, team = team_of()
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        result = await runtime.run("Report.")
    assert (result.outcome, result.text) == ("completed", REPORT)


def failing_once():
    tried = []

    def work(_):
        tried.append(1)
        if len(tried) == 1:
            raise OSError("not yet")
        return "Found."

    return work


OPTIONAL = "- [ ] 1. Look it up @finder (optional)\n- [ ] 2. Write it @writer\n"


def fails(_):
    return SpecialistResult(status="failed", error="nothing there", retry=False)


@pytest.mark.parametrize(
    "options",
    [
        {"judge": "always"},
        {"think": thought("3")},
        {"think": thought("the last")},
        {"think": thought("1 and 2")},
        {"find": failing_once()},
        {"find": fails, "think": thought(plan=OPTIONAL)},
        {"write": lambda _: SpecialistResult(status="partial", result="Half.")},
        {"write": lambda _: SpecialistResult(result=REPORT, replan_needed=True)},
        {"host": {"output_type": dict[str, str]}},
    ],
    ids=str,
)
async def test_whatever_else_happened_is_judged_by_the_model(options):
    model, team = team_of(**options)
    await run(team, "Report.")
    assert "feedback" in [call.node for call in model.calls]


async def test_a_plan_that_a_person_approved_or_wrote_is_judged_by_the_model(tmp_path):
    model, team = team_of(approval="plan")
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        waiting = await runtime.run("Report.")
        await (await runtime.answer(waiting.run_id, {"plan": "approve"}))
    assert [call.node for call in model.calls] == ["think", "feedback"]
    model, team = team_of()
    await run(team, {"messages": [("user", "Report.")], "plan": "- [ ] 1. Write it @writer\n"})
    assert [call.node for call in model.calls] == ["feedback"]


async def test_a_question_that_is_no_decision_leaves_nothing_to_judge(tmp_path):
    model, team = team_of(find=lambda _: str(ask_user("Where?")))
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        waiting = await runtime.run("Report.")
        result = await (await runtime.answer(waiting.run_id, "In the attic."))
    assert (result.text, [call.node for call in model.calls]) == (REPORT, ["think"])


@pytest.mark.parametrize(("judge", "is_offered"), [("always", False), ("when_needed", True)])
async def test_the_offer_stands_in_the_prompt_of_teams_that_want_it(judge, is_offered):
    model, team = team_of(judge=judge)
    await run(team, "Report.")
    prompt = "\n".join(message.text for message in model.calls[0].messages)
    assert ("`answer_step:`" in prompt) is is_offered
