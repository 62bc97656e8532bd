"""A reply that was cut off: a plan is asked for again and never run, an answer is marked."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import RunSettings, raise_limits, run, stream
from replan.errors import InputError
from replan.state.cuts import CUTS
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of
from two_ways import calls_of

PLAN = "# Two\n\n- [ ] 1. Find it @researcher\n- [ ] 2. Compare it @analyst (after 1)\n"
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"
ONLY_ONE = "---\ncomplexity: complex\n---\n# Two\n\n- [ ] 1. Find it @researcher\n"
SIMPLE = "---\ncomplexity: simple\n---\nIt is Par"
STEPS = {"step 1": "found", "step 2": "compared"}


def cut(text, reason="length"):
    """A reply that ends before it is over."""
    return Reply(text, finish_reason=reason, usage=(100, 50))


async def events_of(graph, given="Do it."):
    return [event async for event in stream(graph, given)]


def told(events):
    """The limits that were told, with their values."""
    return [(event.limit, event.value) for event in events if event.type == "limit_reached"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_plan_that_was_cut_off_is_asked_for_again(team, on_script, reason):
    script = {"think": [cut(ONLY_ONE, reason), THINK], **STEPS, "feedback": COMPLETE}
    with on_script(script) as model:
        state = (await run(team(model), "Do it.")).state
    assert [step.status for step in state["current_plan"].steps] == ["completed", "completed"]
    assert state["outcome"] == "completed"
    complaint = calls_of(model)[1].messages[-1].text
    why = CUTS["reply_length" if reason == "length" else reason]
    assert complaint.startswith(f"The reply is incomplete: {why}.")
    assert "shorter" in complaint


async def test_of_a_plan_that_is_cut_off_twice_no_step_runs_and_the_planner_is_asked(
    team, on_script
):
    script = {"think": [cut(ONLY_ONE), cut(ONLY_ONE)], "plan_creation": PLAN, **STEPS}
    with on_script({**script, "feedback": COMPLETE}) as model:
        events = await events_of(team(model))
    assert events[-1].outcome == "completed"
    assert [step.id for step in next(e.plan for e in events if e.type == "plan_created").steps] == [
        1,
        2,
    ]
    record = next(event for event in events if event.type == "reply_parse_failed")
    assert (record.node, record.fallback) == ("think", "the plan is asked for by itself")
    assert "length limit" in record.problem


async def test_a_planner_that_is_cut_off_twice_leaves_one_step_with_the_request(team, on_script):
    script = {"think": [cut(ONLY_ONE)] * 2, "plan_creation": [cut(PLAN)] * 2}
    with on_script({**script, "step 1": "done", "feedback": COMPLETE}) as model:
        state = (await run(team(model), "Compare what the analyst finds.")).state
    plan = state["current_plan"]
    assert [step.description for step in plan.steps] == ["Compare what the analyst finds."]
    fallbacks = [(each.node, each.fallback) for each in state["unreadable_replies"]]
    assert fallbacks == [
        ("think", "the plan is asked for by itself"),
        ("plan_creation", "a plan of one step"),
    ]
    assert "is incomplete" in state["unreadable_replies"][1].problem


@pytest.mark.parametrize(
    ("reason", "name"), [("length", "reply_length"), ("SAFETY", "content_filter")]
)
async def test_an_answer_that_was_cut_off_is_marked_and_not_asked_for_again(
    team, on_script, reason, name
):
    with on_script({"think": cut(SIMPLE, reason)}) as model:
        graph = team(model)
        events = await events_of(graph)
        state = (await run(team(ScriptedModel({"think": cut(SIMPLE, reason)})), "Capital?")).state
    assert (events[-1].outcome, events[-1].answer.text) == ("partial", "It is Par")
    assert told(events) == [(name, 50)]
    assert (state["outcome"], state["limit_reached"]) == ("partial", name)
    assert state["unreadable_replies"] == []


@pytest.mark.parametrize(
    "reply",
    [
        '{"complexity": "simple", "answer": "It is Par',
        '{"answer": "It is Par',
        '{"plan": [1, 2,',
    ],
    ids=["labelled", "unlabelled", "a list"],
)
async def test_half_a_json_reply_is_shown_as_it_is_and_never_as_whole(team, on_script, reply):
    with on_script({"*": always(Reply(reply, usage=(100, 50)))}) as model:
        events = await events_of(team(model))
    assert (events[-1].outcome, events[-1].answer.text) == ("partial", reply)
    assert told(events) == [("unfinished_reply", 50)]
    assert any("ends in the middle of its JSON" in each for each in events[-1].warnings)


async def test_a_direct_answer_that_was_cut_off_is_marked(team, on_script):
    script = {"think": "---\ncomplexity: simple\n---\n", "direct_answer": cut("It is Par")}
    with on_script(script) as model:
        events = await events_of(team(model))
    assert (events[-1].outcome, events[-1].answer.text) == ("partial", "It is Par")
    assert told(events) == [("reply_length", 50)]


async def test_a_refusal_is_told_in_its_own_words(team, on_script):
    refused = Reply(refusal="I cannot help with that.", usage=(100, 9))
    script = {"think": [refused, refused], "direct_answer": refused}
    with on_script(script) as model:
        state = (await run(team(model), "Do harm.")).state
    assert state["outcome"] == "failed"
    text = "There is no answer: the model refused: I cannot help with that."
    assert state["final_answer"].text == text
    assert state["limit_reached"] == "content_filter"
    assert "I cannot help with that" in state["unreadable_replies"][0].problem


@pytest.mark.parametrize("calls", ["merged", "separate"])
async def test_an_answer_that_is_a_refusal_fails_with_its_own_words_and_no_limit(
    team, on_script, calls
):
    words = "I cannot help with that."
    merged, alone = f"---\ncomplexity: simple\n---\n{words}", Reply(words, refusal=words)
    script = {"think": Reply(merged, refusal=words), "direct_answer": alone}
    if calls == "separate":
        script["think"] = "---\ncomplexity: simple\n---\n"
    with on_script({key: always(reply) for key, reply in script.items()}) as model:
        events = await events_of(team(model, calls=calls))
        state = (await run(team(model, calls=calls), "Do harm.")).state
    assert (state["outcome"], state["final_answer"].text) == ("failed", words)
    assert (events[-1].outcome, told(events), state["limit_reached"]) == ("failed", [], "")


async def test_a_reply_that_ends_for_refusal_fails(team, on_script):
    half = Reply("---\ncomplexity: simple\n---\nI will not", finish_reason="refusal")
    with on_script({"think": half}) as model:
        state = (await run(team(model), "Do harm.")).state
    assert (state["outcome"], state["final_answer"].text) == ("failed", "I will not")


async def test_a_final_answer_of_the_judgement_that_was_cut_off_is_marked(team, on_script):
    script = {"think": THINK, **STEPS, "feedback": cut("---\nverdict: complete\n---\nThe ans")}
    with on_script(script) as model:
        events = await events_of(team(model))
    assert (events[-1].outcome, events[-1].answer.text) == ("partial", "The ans")
    assert told(events) == [("reply_length", 50)]


async def test_a_final_answer_that_was_cut_off_is_marked(team, on_script):
    think = {"think": "---\ncomplexity: complex\n---\n", "plan_creation": PLAN, **STEPS}
    judged = {"feedback": "---\nverdict: complete\n---\n", "final_answer": cut("The ans")}
    with on_script({**think, **judged}) as model:
        events = await events_of(team(model, calls="separate"))
    assert (events[-1].outcome, events[-1].answer.text) == ("partial", "The ans")
    assert told(events) == [("reply_length", 50)]


async def test_a_final_answer_that_a_filter_kept_back_is_replaced_by_the_results_and_told(
    team, on_script
):
    think = {"think": "---\ncomplexity: complex\n---\n", "plan_creation": PLAN, **STEPS}
    judged = {
        "feedback": "---\nverdict: complete\n---\n",
        "final_answer": cut("", "content_filter"),
    }
    with on_script({**think, **judged}) as model:
        state = (await run(team(model, calls="separate"), "Do it.")).state
    assert (state["outcome"], state["limit_reached"]) == ("partial", "content_filter")
    assert "compared" in state["final_answer"].text
    assert "a content filter cut the reply off" in state["final_answer"].text


FOUR = "- [ ] 1. A @researcher\n- [ ] 2. B @researcher\n- [ ] 3. C @analyst (after 2)\n"
FAILED = "---\nstatus: failed\nretry: no\n---\nNo access."
REVISED = """\
---
verdict: continue
---
- [x] 1. A @researcher
- [ ] 2. B elsewhere @researcher
- [ ] 3. C @analyst (after 2)
"""
HALF = "---\nverdict: continue\n---\n- [x] 1. A @researcher\n- [ ] 2. B else"


async def test_a_revision_that_was_cut_off_is_asked_for_again(team, on_script):
    script = {"step 1": "a", "step 2": [FAILED, "b"], "step 3": "c"}
    with on_script({**script, "feedback": [cut(HALF), REVISED, COMPLETE]}) as model:
        state = (await run(team(model), {"messages": ["Go."], "plan": FOUR})).state
    assert state["outcome"] == "completed"
    assert [step.description for step in state["current_plan"].steps] == ["A", "B elsewhere", "C"]
    assert state["unreadable_replies"] == []


async def test_a_revision_that_is_cut_off_twice_changes_nothing(team, on_script):
    script = {"step 1": "a", "step 2": FAILED, "final_answer": always("No B.")}
    with on_script({**script, "feedback": always(cut(HALF))}) as model:
        state = (await run(team(model), {"messages": ["Go."], "plan": FOUR})).state
    plan = state["current_plan"]
    assert [step.description for step in plan.steps] == ["A", "B", "C"]
    assert plan.step(3).dependencies == (2,)
    assert plan.version == 1
    assert state["outcome"] == "partial"
    assert {each.fallback for each in state["unreadable_replies"]} == {"the plan stays as it is"}


async def test_a_plan_update_that_was_cut_off_is_asked_for_again_and_cut_twice_changes_nothing(
    team, on_script
):
    judged = "---\nverdict: continue\nupdate: Try B elsewhere.\n---\n"
    body = REVISED.partition("---\n")[2].partition("---\n")[2]
    half = HALF.partition("---\n")[2].partition("---\n")[2]
    script = {"think": "---\ncomplexity: complex\n---\n", "step 1": "a", "step 3": "c"}
    script |= {"final_answer": always("Done."), "step 2": [FAILED, "b"]}
    feedback = [judged, "---\nverdict: complete\n---\n"]
    with on_script({**script, "feedback": feedback, "plan_update": [cut(half), body]}) as model:
        state = await state_of(
            run(team(model, calls="separate"), {"messages": ["Go."], "plan": FOUR})
        )
    assert [step.description for step in state["current_plan"].steps] == ["A", "B elsewhere", "C"]
    del script["step 3"]
    script |= {"step 2": FAILED, "feedback": always(judged), "plan_update": always(cut(half))}
    state = (
        await run(
            team(ScriptedModel(script), calls="separate"), {"messages": ["Go."], "plan": FOUR}
        )
    ).state
    assert [step.description for step in state["current_plan"].steps] == ["A", "B", "C"]
    assert "is incomplete" in state["unreadable_replies"][0].problem


async def test_a_result_that_was_cut_off_is_asked_for_once_more_shorter(team, on_script):
    script = {"think": THINK, **STEPS, "step 1": [cut("far too lo"), "short"], "feedback": COMPLETE}
    with on_script(script) as model:
        state = (await run(team(model), "Do it.")).state
    result = state["current_specialist_results"]["1/researcher"]
    assert (result.text, result.cut, result.usage.calls) == ("short", "", 2)
    asked = [call for call in calls_of(model) if call.step == 1]
    assert asked[1].messages[-2].text == "far too lo"
    assert "shorter" in asked[1].messages[-1].text
    assert state["outcome"] == "completed"


async def test_a_result_that_stays_cut_off_counts_and_is_marked_wherever_it_is_shown(
    team, on_script
):
    script = {"think": THINK, "step 1": [cut("far too lo"), cut("still too lo")], "step 2": "c"}
    with on_script({**script, "feedback": COMPLETE}) as model:
        events = await events_of(team(model))
    marked = "[Incomplete: the reply was cut off at its length limit.]\n\nstill too lo"
    done = next(e for e in events if e.type == "specialist_completed" and e.step_id == 1)
    assert (done.result.text, done.result.cut) == ("still too lo", "reply_length")
    prompts = {(call.node, call.step): call.messages[-1].text for call in calls_of(model)}
    assert marked in prompts["specialist", 2]
    assert marked in prompts["feedback", None]
    plan = [event for event in events if event.type == "plan_updated"][-1].plan
    assert plan.step(1).result == marked
    assert "> [Incomplete: the reply was cut off at its length limit.]" in plan.content
    # The answer was made of it, and is whole itself.
    assert events[-1].outcome == "completed"


async def test_no_larger_limit_lets_a_run_go_on_whose_answer_was_cut_off(team, on_script):
    with on_script({"think": cut(SIMPLE)}) as model:
        graph = team(model, checkpointer=InMemorySaver())
        await run(graph, "Capital?", config=THREAD)
    with pytest.raises(InputError, match="No limit ended this run"):
        await raise_limits(graph, settings=RunSettings(), config=THREAD)
