"""The gate before a plan: approved, changed, rejected, killed in between, and when it is asked."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    Specialist,
    SpecialistResult,
    StepStatus,
    Team,
    ask_user,
    build_graph,
    open_storage,
    run,
    stream,
    waiting_for,
)
from replan.state.questions import fingerprint_of
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD, given
from states import said

PLAN = "# The work\n\n- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)"
THINK = f"---\ncomplexity: complex\nreasoning: Two parts.\n---\n{PLAN}"
REVISED = (
    "---\nverdict: continue\nsuggested_action: update_plan\nupdate: Another way.\n---\n"
    "# The work\n\n- [x] 1. One @a\n- [ ] 2. Two, otherwise @a (after 1)\n"
)


def graph_of(model, checkpointer=None, *, work=None, approval="plan", **options):
    ran = []

    def does(context):
        ran.append((context.plan_step.id, context.task_description))
        return "done" if work is None else work(context)

    team = [Specialist(name=name, intended_use="Works.", run=does) for name in ("a", "b")]
    config = Team(host=Host(model=model), specialists=team, approval=approval, **options)
    return build_graph(config, checkpointer=checkpointer), ran


async def waiting(model, **options):
    graph, ran = graph_of(model, InMemorySaver(), **options)
    state = (await run(graph, "Do it.", config=THREAD)).state
    assert state["outcome"] == "waiting"
    (asked,) = waiting_for(state)
    return graph, ran, asked


async def decide(graph, decision):
    return (await run(graph, await said(graph, decision, THREAD), config=THREAD)).state


@pytest.mark.parametrize("decision", ["approve", {"action": "approve"}, True, "Yes."])
async def test_an_approved_plan_runs_as_it_is(decision):
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran, asked = await waiting(model)
        about = fingerprint_of("plan", 1, PLAN)
        assert (asked.key, asked.kind, asked.text, asked.fingerprint) == (
            "plan",
            "plan",
            PLAN,
            about,
        )
        assert asked.details == {"version": 1, "reason": "Two parts.", "changes": ""}
        assert ran == []
        state = await decide(graph, decision)
    assert ran == [(1, "One"), (2, "Two")]
    assert state["outcome"] == "completed"
    assert (state["plan_history"], state["approval"]) == ([], None)


async def test_a_changed_document_runs_in_the_person_s_words_and_its_history_says_so():
    edited = (
        "# The work\n<!-- mine -->\n\n* [ ] 1. One, better @A\n* [-] 2. Two @b\n* [ ] Three @b\n"
    )
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran, _ = await waiting(model)
        state = await decide(graph, {"action": "edit", "plan": edited})
    assert ran == [(1, "One, better"), (3, "Three")]
    plan = state["current_plan"]
    assert plan.step(2).status is StepStatus.SKIPPED
    assert "<!-- mine -->" in plan.content
    (update,) = state["plan_history"]
    assert (update.by, update.version) == ("person", 2)
    assert state["outcome"] == "completed"


@pytest.mark.parametrize(
    ("edited", "problem"),
    [
        ("- [ ] 1. One @a (after 1)\n- [ ] 2. Two @b (after 9)\n", "line 2, column"),
        (
            "- [ ] 1. One @stranger\n- [ ] 2. Two @nobody\n",
            "line 2, column 14: Step 2 names @nobody",
        ),
        ("", "The changed plan is missing"),
        ("Just a sentence.", "step"),
    ],
)
async def test_the_mistakes_of_a_changed_document_come_back_to_the_person(edited, problem):
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran, asked = await waiting(model)
        state = await decide(graph, {"action": "edit", "plan": edited})
        (again,) = waiting_for(state)
        assert state["outcome"] == "waiting"
        assert problem in again.problem
        assert again.draft == edited
        assert again.replace(problem="", draft="") == asked
        state = await decide(graph, PLAN.replace("Two", "Second"))
    assert ran == [(1, "One"), (2, "Second")]


@pytest.mark.parametrize(
    "decision", [None, {}, 7, "maybe", {"plan": "x"}, {"action": "burn"}, ["a"]]
)
async def test_what_is_no_decision_is_asked_for_again(decision):
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran, asked = await waiting(model)
        # Going on without a word changes nothing.
        assert waiting_for((await run(graph, None, config=THREAD)).state) == (asked,)
        state = await decide(graph, decision)
        assert "This is not a decision" in waiting_for(state)[0].problem
        await decide(graph, "approve")
    assert len(ran) == 2


async def test_a_plan_that_is_rejected_without_a_reason_ends_the_run():
    with ScriptedModel({"think": THINK}) as model:
        graph, ran, _ = await waiting(model)
        state = await decide(graph, "reject")
    assert (state["outcome"], ran) == ("rejected", [])
    text = state["final_answer"].text
    assert text.startswith("The plan was rejected.\n\nNothing was done.")
    assert "1. One: not run" in text
    assert state["usage"].calls == 1


async def test_a_plan_that_is_rejected_with_a_reason_is_planned_anew_and_asked_about_again():
    with ScriptedModel(
        {"think": THINK, "plan_update": PLAN.replace("Two", "Short"), "feedback": COMPLETE}
    ) as model:
        graph, ran, _ = await waiting(model)
        state = await decide(graph, {"action": "reject", "reason": "Two is too long."})
        (asked,) = waiting_for(state)
        assert asked.details["reason"] == "Two is too long."
        assert (
            "-- [ ] 2. Two @b (after 1)\n+- [ ] 2. Short @b (after 1)" in asked.details["changes"]
        )
        assert (state["stalls"], state["current_round"], ran) == (1, 2, [])
        assert "Two is too long." in model.calls[1].messages[-1].text
        state = await decide(graph, "approve")
    assert state["outcome"] == "completed"
    assert ran == [(1, "One"), (2, "Short")]


async def test_rejections_are_bounded_like_stalls():
    plans = [PLAN.replace("Two", word) for word in ("Second", "Third")]
    with ScriptedModel({"think": THINK, "plan_update": plans}) as model:
        graph, ran, _ = await waiting(model)
        for _ in range(2):
            state = await decide(graph, "reject: no")
            assert state["outcome"] == "waiting"
        state = await decide(graph, "reject: no")
    assert (state["outcome"], state["limit_reached"], ran) == ("rejected", "max_stalls", [])
    assert "1. One: not run, the limit max_stalls was reached" in state["final_answer"].text


async def test_a_plan_that_a_person_rejects_at_last_was_not_ended_by_a_limit():
    with ScriptedModel({"think": THINK, "plan_update": PLAN.replace("Two", "Short")}) as model:
        limits = Limits(max_stalls=1)
        graph, _, _ = await waiting(model, limits=limits)
        await decide(graph, "reject: Two is too long.")
        state = await decide(graph, "reject")
    assert (state["outcome"], state["limit_reached"]) == ("rejected", "")
    assert "the limit" not in state["final_answer"].text


async def test_a_model_without_another_plan_leaves_the_decision_to_the_person():
    with ScriptedModel({"think": THINK, "plan_update": PLAN, "feedback": COMPLETE}) as model:
        graph, ran, _ = await waiting(model)
        state = await decide(graph, "reject: I do not like it")
        assert waiting_for(state)[0].details["reason"] == "The model has no other plan."
        await decide(graph, "approve")
    assert len(ran) == 2


async def test_what_is_wrong_with_a_revision_is_no_fault_of_the_word_that_asked_for_it():
    short = f"{PLAN[: PLAN.index('- [ ] 2.')]}- [ ] 3. Three @a (after 1)\n"
    with ScriptedModel({"think": THINK, "plan_update": [short, short]}) as model:
        graph, _, _ = await waiting(model)
        (asked,) = waiting_for(await decide(graph, "reject: Two is too long."))
    assert asked.problem == ""
    assert (
        "Two is too long.\nNot all of the model's revision is taken:\n" in asked.details["reason"]
    )
    assert "leaves out these steps: 2 (Two)" in asked.details["reason"]


def failing(context):
    if context.task_description == "Two":
        return SpecialistResult(status=ExecutionStatus.FAILED, error="no", retry=False)
    return "done"


@pytest.mark.parametrize(
    ("approval", "handed_in", "asked"),
    [
        ("never", False, []),
        ("plan", False, [1]),
        ("revisions", False, [2]),
        ("always", False, [1, 2]),
        ("plan", True, []),
        ("revisions", True, [2]),
        ("always", True, [1, 2]),
    ],
)
async def test_who_is_asked_about_what(approval, handed_in, asked):
    script = {"think": THINK, "feedback": [REVISED, COMPLETE]}
    if handed_in:
        del script["think"]
    with ScriptedModel(script) as model:
        graph, _ = graph_of(model, InMemorySaver(), work=failing, approval=approval)
        given = {"messages": [("user", "Go.")], **({"plan": PLAN} if handed_in else {})}
        state, versions = (await run(graph, given, config=THREAD)).state, []
        while state["outcome"] == "waiting":
            versions.append(waiting_for(state)[0].details["version"])
            state = await decide(graph, "approve")
    assert versions == asked
    assert state["outcome"] == "completed"


async def test_a_revision_shows_what_changes_and_why_and_may_not_touch_what_is_finished():
    with ScriptedModel({"think": THINK, "feedback": [REVISED, COMPLETE]}) as model:
        graph, ran, asked = await waiting(model, work=failing, approval="revisions")
        assert asked.details["reason"] == "Another way."
        assert "+- [ ] 2. Two, otherwise @a (after 1)" in asked.details["changes"]
        for wrong in (
            asked.text.replace("1. One", "1. Something else"),
            asked.text.replace("[x]", "[ ]"),
            "- [ ] 2. Two, otherwise @a\n",
        ):
            state = await decide(graph, {"action": "edit", "plan": wrong})
            assert "Step 1 is completed and cannot" in waiting_for(state)[0].problem
        state = await decide(graph, asked.text.replace("otherwise", "my way"))
    assert [step for step, _ in ran] == [1, 2, 2]
    assert ran[-1] == (2, "Two, my way")
    assert [update.by for update in state["plan_history"]] == ["model", "person"]


async def test_a_step_that_a_person_words_otherwise_takes_its_question_back():
    def work(context):
        if context.task_description == "Two":
            return failing(context)
        return str(ask_user(context.task_description))

    revised = REVISED.replace("[x] 1", "[ ] 1").replace(" (after 1)", "")
    plan = "- [ ] 1. One @a\n- [ ] 2. Two @b\n"
    with ScriptedModel({"feedback": [revised, COMPLETE]}) as model:
        graph, _ = graph_of(model, InMemorySaver(), work=work, approval="revisions")
        state = (await run(graph, given(plan), config=THREAD)).state
        assert list(state["questions"]) == ["1/a/1"]
        (shown,) = waiting_for(state)
        state = await decide(graph, "# The work\n\n- [ ] 1. First @a\n- [-] 2. Two @b\n")
        assert shown.details["version"] == 2
        assert [(q.key, q.text) for q in waiting_for(state)] == [("1/a/2", "First")]
        state = await decide(graph, "yes")
    assert state["current_specialist_results"]["1/a"].text == "yes"


async def test_a_rejected_revision_ends_the_run_and_says_what_was_done():
    with ScriptedModel({"think": THINK, "feedback": REVISED}) as model:
        graph, _, _ = await waiting(model, work=failing, approval="revisions")
        state = await decide(graph, "no")
    assert state["outcome"] == "rejected"
    assert "What was done before:\n\n## 1. One\n\ndone" in state["final_answer"].text
    assert "2. Two, otherwise: not run" in state["final_answer"].text


async def test_a_plan_that_must_not_be_revised_by_the_model_can_be_changed_at_the_gate():
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran, _ = await waiting(model, allow_dynamic_update=False)
        state = await decide(graph, PLAN.replace("Two", "Second"))
    assert ran == [(1, "One"), (2, "Second")]
    assert not state["current_plan"].allow_dynamic_update


def office_of(model, *names, ran):
    def work(context):
        ran.append(context)
        return "done"

    team = [Specialist(name=name, intended_use="Works.", run=work) for name in names]
    host = Host(model=model)
    return Team(host=host, specialists=team, approval="always")


@pytest.mark.parametrize(
    ("newest", "outcome", "done"),
    [
        ("reject", "rejected", []),
        ("approve", "completed", ["Look"]),
        ("- [ ] 1. Look twice @worker\n", "completed", ["Look twice"]),
    ],
)
async def test_a_refused_edit_does_not_run_after_a_newer_word(newest, outcome, done):
    """The team has changed in between, so that what was refused could be taken."""
    ran, saver = [], InMemorySaver()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        small = build_graph(office_of(model, "worker", ran=ran), checkpointer=saver)
        await run(small, {"plan": "- [ ] 1. Look @worker\n"}, config=THREAD)
        refused = await decide(small, "- [ ] 1. Delete everything @cleaner\n")
        assert "names @cleaner, whom the team does not have" in waiting_for(refused)[0].problem
        team = office_of(model, "worker", "cleaner", ran=ran)
        large = build_graph(team, checkpointer=saver)
        state = await decide(large, newest)
    assert state["outcome"] == outcome
    assert [context.task_description for context in ran] == done


async def test_a_refused_edit_does_not_run_without_a_newer_word(tmp_path):
    ran, edit = [], "- [ ] 1. Delete everything @cleaner\n"
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_storage(tmp_path / "runs.db") as storage:
            small = build_graph(office_of(model, "worker", ran=ran), storage=storage)
            await run(small, {"plan": "- [ ] 1. Look @worker\n"}, config=THREAD)
            await decide(small, edit)
        async with open_storage(tmp_path / "runs.db") as storage:
            large = build_graph(office_of(model, "worker", "cleaner", ran=ran), storage=storage)
            state = (await run(large, None, config=THREAD)).state
            assert "names @cleaner, whom the team does not have" in waiting_for(state)[0].problem
            assert waiting_for(state)[0].draft == edit
            assert ran == []
            state = await decide(large, edit)
    assert [context.task_description for context in ran] == ["Delete everything"]


async def test_the_events_tell_of_the_request_once_and_of_a_person_s_change():
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, _ = graph_of(model, InMemorySaver())
        first = [event async for event in stream(graph, "Do it.", config=THREAD)]
        resume = await said(graph, PLAN.replace("Two", "Second"), THREAD)
        second = [event async for event in stream(graph, resume, config=THREAD)]
    assert first[-1].type == "approval_requested"
    assert first[-1].question.text == PLAN
    assert (second[0].type, second[0].action) == ("answer_received", "edited")
    assert (second[1].type, second[1].by) == ("plan_updated", "person")


async def test_without_a_checkpointer_the_run_ends_with_the_plan_which_can_be_handed_in():
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran = graph_of(model)
        state = (await run(graph, "Do it.")).state
        assert state["outcome"] == "waiting"
        (shown,) = waiting_for(state)
        state = (await run(graph, {"messages": state["messages"], "plan": shown.text})).state
    assert (state["outcome"], len(ran)) == ("completed", 2)


async def test_a_gate_needs_a_plan_that_waits():
    with ScriptedModel({"think": THINK, "feedback": always(COMPLETE)}) as model:
        graph, _ = graph_of(model, InMemorySaver(), limits=Limits(max_rounds=1))
        await run(graph, "Do it.", config=THREAD)
        await graph.aupdate_state(THREAD, {"approval": None}, as_node="plan_creation")
        state = (await run(graph, None, config=THREAD)).state
    # Whoever edits the request away in Studio has let the plan run.
    assert state["outcome"] == "completed"
