"""What the options of a step do: its model, its estimate, and the leave to begin."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from replan import Host, InputError, Specialist, Team, build_graph, run
from replan.plan import PlanDocument, compare, merge_revision
from replan.state.questions import Question
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD, given

ASKS_FIRST = "- [ ] 1. Look @a\n- [ ] 2. Send it @a (after 1; ask first)\n"


def graph_of(work, model):
    member = Specialist("a", "Works.", run=work, effects="pure")
    return build_graph(Team(Host(model), [member]), checkpointer=InMemorySaver())


def working(ran):
    def work(context):
        ran.append(context.plan_step.id)
        return f"text {context.plan_step.id}"

    return work


async def asked(graph, plan):
    state = (await run(graph, given(plan), config=THREAD)).state
    assert state["outcome"] == "waiting"
    (question,) = [each for each in state["questions"].values() if each.is_open]
    return question


async def decided(graph, question: Question, answer):
    reply = Command(resume={question.key: question.bound(answer)})
    return (await run(graph, reply, config=THREAD)).state


async def test_a_step_that_asks_first_begins_after_its_approval():
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(working(ran), model)
        question = await asked(graph, ASKS_FIRST)
        assert (question.kind, question.step_id, ran) == ("approval", 2, [1])
        about = {"inputs": {"1": "text 1"}, "does": "Works.", "effects": "pure"}
        assert question.details["arguments"] == {"task": "Send it", **about}
        state = await decided(graph, question, "approve")
    assert (state["outcome"], ran) == ("completed", [1, 2])
    assert "- [x] 2. Send it @a (after 1; ask first)" in state["current_plan"].content


async def test_a_step_that_may_not_begin_fails_with_the_reason_and_without_its_work():
    ran = []
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        graph = graph_of(working(ran), model)
        question = await asked(graph, ASKS_FIRST)
        state = await decided(graph, question, {"action": "reject", "reason": "Too early."})
    assert ran == [1]
    step = state["current_plan"].step(2)
    assert step.status == "failed"
    assert step.feedback.endswith("Too early.")


async def test_what_is_no_decision_is_asked_about_again():
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(working(ran), model)
        question = await asked(graph, ASKS_FIRST)
        edit = {"action": "edit", "arguments": {"task": "Send all"}}
        state = await decided(graph, question, edit)
        assert state["outcome"] == "waiting"
        (again,) = [each for each in state["questions"].values() if each.is_open]
        assert "change the plan" in again.text
        state = await decided(graph, again, "yes")
    assert (state["outcome"], ran) == ("completed", [1, 2])


async def test_an_approved_step_that_fails_is_tried_again_without_another_question():
    ran = []

    def work(context):
        ran.append(context.attempt)
        if len(ran) == 1:
            raise RuntimeError("busy")
        return "done"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model)
        question = await asked(graph, "- [ ] 1. Send it @a (ask first; retries 1)\n")
        state = await decided(graph, question, "approve")
    assert (state["outcome"], ran) == ("completed", [1, 2])


async def test_a_model_may_let_a_step_ask_first_and_may_not_take_it_back():
    ran = []
    revised = "---\nverdict: continue\n---\n- [x] 1. Look @a\n- [ ] 2. Send it all @a (after 1)\n"
    old = PlanDocument.parse(ASKS_FIRST).plan
    new = PlanDocument.parse("- [ ] 1. Look @a\n- [ ] 2. Send it all @a (after 1)\n").plan
    changes = compare(old, merge_revision(old, new)[0])
    assert changes.record == {"modified": {"2": {"description": "Send it all"}}}
    with ScriptedModel({"feedback": [revised]}) as model:
        graph = graph_of(working(ran), model)
        plan = "- [ ] 1. Look @a\n- [!] 2. Send it @a (after 1; ask first)\n"
        question = await asked(graph, plan)
        assert (question.step_id, ran) == (2, [1])


async def test_a_step_is_done_by_the_model_that_it_names():
    plan = "- [ ] 1. Draft @a (model fast)\n- [ ] 2. Polish @a (after 1)\n"
    with (
        ScriptedModel({"feedback": COMPLETE}) as host,
        ScriptedModel(["Polished."]) as usual,
        ScriptedModel(["Drafted."]) as fast,
    ):
        member = Specialist("a", "Writes.", chat_model=usual, step_models={"fast": fast})
        graph = build_graph(Team(Host(host), [member]))
        state = (await run(graph, given(plan))).state
    assert [step.result for step in state["current_plan"].steps] == ["Drafted.", "Polished."]


async def test_a_model_that_the_team_does_not_allow_is_a_mistake_in_its_line():
    member = Specialist("a", "Writes.", chat_model="offline", step_models={"fast": "offline"})
    graph = build_graph(
        Team(Host("offline"), [member, Specialist("b", "Reads.", chat_model="offline")])
    )
    plan = "- [ ] 1. Draft @a (model slow)\n- [ ] 2. Read @b (model fast)\n"
    with pytest.raises(InputError) as refused:
        await run(graph, given(plan))
    text = str(refused.value)
    assert "names the model slow, which @a does not have. Use one of: fast." in text
    assert "names the model fast, which @b does not have." in text
    assert "line 1" in text
    assert "line 2" in text


def model_graph(host):
    model = ScriptedModel(always("Done."))
    member = Specialist("a", "Writes.", chat_model=model, step_models={"fast": model})
    return build_graph(Team(Host(host), [member]), checkpointer=InMemorySaver())


async def test_a_model_is_told_once_of_a_model_that_the_team_does_not_allow():
    head, line = "---\ncomplexity: complex\n---\n", "- [ ] 1. Draft @a (model slow)\n"
    replies = {"think": head + line, "plan_creation": [line.replace("slow", "fast")]}
    with ScriptedModel({**replies, "feedback": COMPLETE}) as host:
        state = (await run(model_graph(host), {"messages": [("user", "Go.")]}, config=THREAD)).state
    assert state["current_plan"].step(1).model == "fast"


@pytest.mark.parametrize("line", ["1. Draft @a (model slow)", "1. Writes (model slow)"])
async def test_an_edit_with_a_model_that_the_team_does_not_allow_is_refused(line):
    with ScriptedModel({}) as host:
        graph = model_graph(host)
        first = given("- [ ] 1. Draft @a\n")
        await graph.ainvoke(first, THREAD, interrupt_before=["plan_execution"])
        edit = {"current_plan": {"content": f"- [ ] {line}\n"}}
        with pytest.raises(InvalidUpdateError, match=r"line 1.*model slow.*Use one of: fast"):
            await graph.aupdate_state(THREAD, edit)
