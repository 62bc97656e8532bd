"""Nodes that find nothing to work on say so, and what a node does when its second try fails."""

import pytest
from langgraph.runtime import Runtime

from replan import (
    ExecutionStatus,
    Host,
    InputError,
    Limits,
    ModelCallError,
    RunSettings,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    run,
    stream,
)
from replan.host.plan_texts import LONGEST_LINE, one_step_plan
from replan.nodes.feedback import feedback
from replan.nodes.plan_execution import plan_execution
from replan.nodes.plan_update import plan_update
from replan.plan.markdown.document import PlanDocument
from replan.state import FeedbackResult
from replan.state.results import CollectedResults
from replan.testing import HttpFault, ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nThe answer."
REFUSED = HttpFault(401)
PLAN = "- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n"
CYCLE = "- [ ] 1. One @a (after 2)\n- [ ] 2. Two @b (after 1)\n"
COMPLEX = "---\ncomplexity: complex\n---\n"
NO_REASON = SpecialistResult(status=ExecutionStatus.FAILED, error="no", retry=False)


@pytest.mark.parametrize(
    ("node", "state", "missing"),
    [
        (feedback, {}, "no collected results"),
        (plan_update, {}, "no feedback or no plan"),
        (plan_update, {"current_feedback_result": FeedbackResult(should_continue=True)}, "no plan"),
    ],
)
async def test_a_node_without_its_input_says_what_is_missing(services, node, state, missing):
    with pytest.raises(InputError, match=missing):
        await node(state, Runtime(), {}, services=services())


async def test_a_round_without_a_plan_says_where_to_put_one(services):
    state = {"current_collected_results": CollectedResults()}
    with pytest.raises(InputError, match="`current_plan`"):
        await plan_execution(state, Runtime(), {}, services=services())


def test_a_long_request_becomes_the_line_and_the_brief_of_its_one_step():
    request = "Find out\n" + "why " * 100
    plan = one_step_plan(request)
    (step,) = plan.steps
    assert len(step.description) == LONGEST_LINE
    assert step.brief == request
    assert PlanDocument.parse(plan.content).plan.steps[0].description == step.description.strip()


@pytest.mark.parametrize("request_", ["", " \n"])
def test_a_request_without_words_is_a_step_too(request_):
    assert one_step_plan(request_).steps[0].description == "Do what was asked."


async def go(replies, given, work=lambda context: "done", *, settings=None, **options):
    with ScriptedModel(replies) as model:
        team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
        config = Team(host=Host(model=model), specialists=team, **options)
        return (await run(build_graph(config), given, settings=settings)).state, model


def asked(plan=PLAN):
    return {"messages": [("user", "Go.")], "plan": plan}


async def test_a_plan_that_nobody_can_mend_is_taken_as_far_as_it_can_be_read():
    replies = {"think": COMPLEX + CYCLE, "plan_creation": REFUSED, "feedback": COMPLETE}
    state, _ = await go(replies, "Go.")
    assert state["outcome"] == "completed"
    assert "1 -> 2 -> 1" in state["unreadable_replies"][0].problem


async def test_a_plan_with_a_cycle_and_a_stranger_is_written_anew_and_the_stranger_fails():
    document = CYCLE.replace("@b", "@nobody")
    replies = {"think": COMPLEX + document, "plan_creation": REFUSED, "feedback": COMPLETE}
    state, _ = await go(replies, "Go.")
    assert state["outcome"] == "failed"
    written = PlanDocument.parse(state["current_plan"].content).plan
    assert [step.specialists for step in written.steps] == [("a",), ("nobody",)]
    assert "Nobody on the team can do this" in written.steps[1].feedback


@pytest.mark.parametrize("judgement", ["", "All is done."])
async def test_an_unreadable_judgement_that_cannot_be_asked_for_again_is_made_by_rule(judgement):
    replies = {"feedback": [judgement, REFUSED], "final_answer": "From the results."}
    state, _ = await go(replies, asked())
    assert state["current_feedback_result"].by == "rule"
    assert state["final_answer"].text == "From the results."


async def test_a_thinking_model_that_cannot_be_reached_ends_the_run_with_an_error():
    with pytest.raises(ModelCallError, match="'think' did not answer"):
        await go({"think": ["", REFUSED]}, "Go.")


@pytest.mark.parametrize("problem", ["no key", "no key."])
def test_what_kept_a_model_from_answering_is_a_sentence(problem):
    assert "did not answer: no key. Nothing of" in str(ModelCallError("think", problem))


CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: Change it.\n---\n"
CHANGES_A_FINISHED_STEP = "- [ ] 1. Something else @b\n- [ ] 3. Three @a\n"


async def test_of_a_revision_that_nobody_can_mend_the_valid_part_is_taken():
    replies = {
        "feedback": [CONTINUE + CHANGES_A_FINISHED_STEP, COMPLETE],
        "plan_update": REFUSED,
    }
    state, _ = await go(replies, asked("- [ ] 1. One @a\n"))
    assert state["current_plan"].step(1).description == "One"
    assert state["current_plan"].step(3).description == "Three"
    record = state["unreadable_replies"][0]
    assert (record.node, record.fallback) == ("plan_update", "the valid part of the revision")
    assert "[finished_step]" in record.problem


PROSE = CONTINUE + "Try the second source instead."


async def test_a_revision_in_prose_is_asked_for_as_a_plan():
    revised = CONTINUE + "- [ ] 1. One, from the second source @a\n"
    state, model = await go(
        {"feedback": [PROSE, revised, COMPLETE]}, asked("- [ ] 1. One @a\n"), lambda _: NO_REASON
    )
    assert "it holds no plan" in model.calls[1].messages[-1].text
    assert state["current_plan"].step(1).description == "One, from the second source"


async def test_a_revision_that_never_holds_a_plan_leaves_the_plan_and_is_on_record():
    state, _ = await go(
        {"feedback": [PROSE, PROSE, COMPLETE]}, asked("- [ ] 1. One @a\n"), lambda _: NO_REASON
    )
    assert (state["current_plan"].version, state["current_round"]) == (1, 2)
    assert "it holds no plan" in state["unreadable_replies"][0].problem
    assert state["outcome"] == "failed"


async def test_a_plan_goes_on_as_it_is_where_a_separate_revision_cannot_be_had():
    replies = {
        "think": COMPLEX,
        "feedback": [CONTINUE, COMPLETE],
        "plan_update": REFUSED,
        "final_answer": "The answer.",
    }
    state, _ = await go(replies, asked("- [ ] 1. One @a\n"), calls="separate")
    assert state["current_plan"].version == 1
    assert "plan_update" in state["unreadable_replies"][0].problem
    assert state["outcome"] == "completed"


def checked_again():
    """A host that always finds one more check to add."""
    number = 1

    def judge(messages):
        nonlocal number
        number += 1
        done = "".join(f"- [x] {n}. {'One' if n == 1 else 'Check'} @a\n" for n in range(1, number))
        return f"{CONTINUE}{done}- [ ] {number}. Check @a\n"

    return judge


async def test_a_revision_that_is_repeated_again_and_again_ends_the_run():
    replies = {"feedback": always(checked_again()), "final_answer": always("Enough.")}
    state, _ = await go(replies, asked("- [ ] 1. One @a\n"))
    assert state["stalls"] == state["settings"].limits.max_stalls
    # The host wants what it does not get, so the run is not complete.
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_stalls")


async def test_an_answer_that_ends_in_a_newline_is_shown_once():
    replies = {"think": "---\ncomplexity: simple\n---\n", "direct_answer": "It is Paris.\n"}
    with ScriptedModel(replies) as model:
        team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
        host = Host(model=model)
        graph = build_graph(Team(host=host, specialists=team, calls="separate"))
        events = [event async for event in stream(graph, "Capital?")]
    assert "answer_reset" not in [event.type for event in events]
    tokens = [event.text for event in events if event.type == "answer_token"]
    assert "".join(tokens).strip() == "It is Paris."


@pytest.mark.parametrize(("complexity", "outcome"), [("simple", "failed"), ("complex", "failed")])
async def test_a_run_whose_calls_are_used_up_before_it_has_a_plan_ends_in_good_order(
    complexity, outcome
):
    replies = {"think": f"---\ncomplexity: {complexity}\n---\n"}
    settings = RunSettings(limits=Limits(max_model_calls=1))
    state, _ = await go(replies, "Go.", settings=settings, calls="separate")
    assert state["is_completed"]
    assert state["final_answer"].text
    assert state["outcome"] == outcome
