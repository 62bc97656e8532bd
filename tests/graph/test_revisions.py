"""How plans are revised, and how a run ends: the rules first, the model second."""

import pytest

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    RunSettings,
    Specialist,
    SpecialistResult,
    StepStatus,
    Team,
    build_graph,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, given

CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: More.\n---\n"
PLAN = "# Job\n\n- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n"


def failed(error):
    return SpecialistResult(status=ExecutionStatus.FAILED, error=error, retry=False)


def graph_of(work, model, **options):
    team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
    return build_graph(Team(host=Host(model=model), specialists=team, **options))


async def run_plan(work, replies, document=PLAN, *, settings=None, **options):
    with ScriptedModel(replies) as model:
        graph = graph_of(work, model, **options)
        return (await run(graph, given(document), settings=settings)).state


async def test_a_revision_raises_the_version_and_stands_in_the_history():
    revised = CONTINUE + PLAN + "- [ ] 3. Three @a (after 2)\n"
    state = await run_plan(lambda c: "done", {"feedback": [revised, COMPLETE]})
    plan = state["current_plan"]
    assert plan.version == 2
    assert [(u.version, u.update_type, u.by) for u in plan.update_history] == [
        (2, "add_step", "model")
    ]
    assert plan.update_history[0].description == "More."
    assert plan.update_history == tuple(state["plan_history"])
    assert state["current_round"] == 2


async def test_a_step_that_a_revision_writes_without_what_it_waited_for_is_told():
    plan = "- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n- [ ] 3. Three @b (after 1, 2)\n"
    free = "- [ ] 1. One again @a\n- [ ] 2. Two @b\n- [ ] 3. Three @b (after 1)\n"

    def work(context):
        return failed("none") if context.task_description == "One" else "done"

    state = await run_plan(work, {"feedback": [CONTINUE + free, COMPLETE]}, plan)
    (told,) = state["warnings"]
    assert told.startswith("The revision lets step 2 begin without the result of 1: ")


async def test_a_finished_step_cannot_be_changed_and_the_model_is_told_once():
    changed = "# Job\n\n- [ ] 1. Something else @a\n- [ ] 2. Two @b (after 1)\n- [ ] 3. New @a\n"
    asked = []

    def second(messages):
        asked.append(messages[-1].text)
        return changed

    replies = {"feedback": [CONTINUE + changed, COMPLETE], "plan_update": second}
    state = await run_plan(lambda c: "done", replies)
    assert "[finished_step]" in asked[0]
    assert state["current_plan"].step(1).description == "One"
    # The valid rest of the revision is taken.
    assert state["current_plan"].step(3).status is StepStatus.COMPLETED
    assert state["unreadable_replies"][0].node == "plan_update"


async def test_the_model_cannot_declare_a_run_complete_while_a_required_step_can_run():
    settings = RunSettings(round_scope="ready")

    def work(context):
        if context.plan_step.id == 1:
            return SpecialistResult(replan_needed=True)
        return "done"

    with ScriptedModel({"feedback": [COMPLETE, COMPLETE]}) as model:
        graph = graph_of(work, model)
        events = [event async for event in stream(graph, given(PLAN), settings=settings)]
    judged = [event.feedback for event in events if event.type == "feedback_generated"]
    assert [feedback.should_continue for feedback in judged] == [True, False]
    assert judged[0].final_answer is None
    # The refused answer was never shown.
    tokens = "".join(event.text for event in events if event.type == "answer_token")
    assert tokens == "The answer."
    assert events[-1].outcome == "completed"


async def test_rounds_without_progress_end_the_run():
    replies = {"feedback": [always(CONTINUE)], "final_answer": "What there is."}
    state = await run_plan(lambda c: failed("no"), replies)
    assert state["outcome"] == "failed"
    assert state["limit_reached"] == "max_stalls"
    assert state["final_answer"].text.startswith("What there is.")
    assert state["stalls"] == 2


async def test_more_steps_than_the_limit_run_up_to_it():
    plan = "".join(f"- [ ] {i}. Step @a\n" for i in range(1, 8))
    settings = RunSettings(limits=Limits(max_steps=5))
    state = await run_plan(lambda c: "done", {"feedback": COMPLETE}, plan, settings=settings)
    assert state["current_plan"].completed_steps == (1, 2, 3, 4, 5)
    assert state["outcome"] == "partial"
    assert state["limit_reached"] == "max_steps"
    assert "6. Step: not run, the limit max_steps was reached" in state["final_answer"].text


async def test_a_plan_that_may_not_change_stays():
    revised = CONTINUE + PLAN + "- [ ] 3. Three @a\n"
    replies = {"feedback": [always(revised)], "final_answer": "The answer."}
    state = await run_plan(lambda c: "done", replies, allow_dynamic_update=False)
    assert state["current_plan"].total_steps == 2
    assert state["current_plan"].version == 1
    assert state["outcome"] == "completed"
    assert state["final_answer"].text == (
        "The answer.\n\n**Not done:**\n\n"
        "- 3. Three: proposed by the host and not done, the plan must not be revised"
    )


async def test_a_model_that_is_down_at_the_end_does_not_cost_the_results():
    class DownError(Exception):
        status_code = 400

    replies = {"feedback": [always(DownError("gone"))], "final_answer": [always(DownError("gone"))]}
    state = await run_plan(lambda c: f"text {c.plan_step.id}", replies)
    assert (state["outcome"], state["limit_reached"]) == ("partial", "no_answer")
    assert "text 1" in state["final_answer"].text
    assert "text 2" in state["final_answer"].text


BRIEFED = """\
- [ ] 1. Read x.csv @a

  Count the rows whose city is Rome.

  ```yaml
  rag_top_k: 3
  ```

- [ ] 2. Sum up @b (if 1 failed)

  In one sentence.
"""


@pytest.mark.parametrize(
    ("line", "tries"),
    [
        ("- [ ] 1. Read x.csv @a", 1),
        ("- [!] 1. Read x.csv @a", 1),
        ("- [ ] 1. Read x.csv @a\n\n  Count the rows whose city is Rome.", 2),
        ("- [ ] 1. Read x.csv @a\n\n  Count the rows of Rome or Oslo.", 2),
        ("- [ ] 1. Read y.csv @a", 2),
        ("- [ ] 1. Read x.csv @b", 2),
    ],
    ids=["bare", "marked", "no parameters", "other brief", "other title", "other specialist"],
)
async def test_a_failed_step_whose_line_comes_back_alone_has_not_changed(line, tries):
    done = []

    def work(context):
        done.append(context.plan_step)
        return failed("no file") if context.plan_step.id == 1 else "done"

    revised = f"{CONTINUE}{line}\n- [ ] 2. Sum up @b (if 1 failed)\n- [ ] 3. More @a\n"
    state = await run_plan(work, {"feedback": [revised, always(COMPLETE)]}, BRIEFED)
    plan = state["current_plan"]
    assert [step.id for step in done].count(1) == tries
    assert 3 in [step.id for step in done]
    assert plan.step(2).brief == "In one sentence."
    if tries == 1:
        assert plan.step(1).brief == "Count the rows whose city is Rome."
        assert plan.step(1).parameters == {"rag_top_k": 3}


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("---\nstatus: failed\nconfidence: 0.9\n---\nNo note names a due date.", "partial"),
        ("---\nstatus: partial\n---\nOne of two notes names a due date.", "partial"),
        ("", "failed"),
    ],
    ids=["found nothing", "found a part", "said nothing"],
)
async def test_an_answer_from_what_failed_steps_found_is_partial(reply, outcome):
    script = {"feedback": always(COMPLETE), "specialist": always(reply)}
    clerk = Specialist(name="clerk", intended_use="Searches.", chat_model=ScriptedModel(script))
    graph = build_graph(Team(host=Host(model=ScriptedModel(script)), specialists=[clerk]))
    plan = "- [ ] 1. Search the notes @clerk (retries 0)\n- [ ] 2. Sum up @clerk (after 1)\n"
    result = await run(graph, {"plan": plan})
    assert (result.outcome, result.limit_reached) == (outcome, "")
    assert result.text.startswith("The answer.")


@pytest.mark.parametrize("named", ["@a_agent", "(a)", "- a", "[agent: A]"])
async def test_a_specialist_who_is_named_in_another_way_is_asked_about_once(named):
    plan = "- [ ] 1. One {}\n- [ ] 2. Two @b\n"
    replies = {
        "think": f"---\ncomplexity: complex\n---\n{plan.format(named)}",
        "plan_creation": plan.format("@a"),
        "feedback": COMPLETE,
    }
    with ScriptedModel(replies) as model:
        state = (await run(graph_of(lambda c: "done", model), "Go.")).state
    assert "This plan has mistakes:" in model.calls[1].messages[-1].text
    assert state["current_plan"].step(1).assigned_to == "a"
    assert (state["outcome"], state["unreadable_replies"]) == ("completed", [])


@pytest.mark.parametrize("calls", [1, 2, 3])
async def test_however_few_calls_there_are_a_run_of_separate_calls_ends_with_an_answer(
    calls, caplog
):
    judged = "---\ncomplexity: complex\n---\n"
    replies = {
        "think": judged,
        "plan_creation": [always("- [ ] 1. One @a\n")],
        "feedback": [always(COMPLETE)],
        "final_answer": [always("What there is.")],
    }
    with ScriptedModel(replies) as model:
        graph = graph_of(
            lambda c: "done", model, calls="separate", limits=Limits(max_model_calls=calls)
        )
        state = (await run(graph, "Go.")).state
    assert state["final_answer"].text
    assert len(model.calls) <= calls
    assert "callback" not in caplog.text


async def test_a_simple_request_without_a_call_left_says_so():
    with ScriptedModel({"think": "---\ncomplexity: simple\n---\n"}) as model:
        graph = graph_of(
            lambda c: "done", model, calls="separate", limits=Limits(max_model_calls=1)
        )
        state = (await run(graph, "Go.")).state
    assert state["outcome"] == "failed"
    assert "max_model_calls=1" in state["final_answer"].text


async def test_results_that_a_document_brings_along_reach_the_judgement():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        plan = "- [x] 1. One @a\n\n  > Known before.\n"
        await run(graph_of(lambda c: "", model), {"messages": [("user", "Go.")], "plan": plan})
    assert "Known before." in model.calls[0].messages[-1].text
