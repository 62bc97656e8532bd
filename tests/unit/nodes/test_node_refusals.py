"""Nodes that find nothing to work on say so, and what a node does when its second try fails."""

import pytest
from langgraph.runtime import Runtime

from replan import (
    Host,
    InputError,
    ModelCallError,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.nodes.feedback import feedback
from replan.nodes.host.plan_texts import LONGEST_LINE, one_step_plan
from replan.nodes.plan_execution import plan_execution
from replan.nodes.plan_update import plan_update
from replan.plan.markdown.document import PlanDocument
from replan.state import FeedbackResult
from replan.state.results import CollectedResults
from replan.testing import HttpFault, ScriptedModel, always

REFUSED = HttpFault(401)
PLAN = "- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n"


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


async def test_a_thinking_model_that_cannot_be_reached_ends_the_run_with_an_error():
    with pytest.raises(ModelCallError, match="'think' did not answer"):
        await go({"think": ["", REFUSED]}, "Go.")


@pytest.mark.parametrize("problem", ["no key", "no key."])
def test_what_kept_a_model_from_answering_is_a_sentence(problem):
    assert "did not answer: no key. Nothing of" in str(ModelCallError("think", problem))


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


CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: Change it.\n---\n"


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
