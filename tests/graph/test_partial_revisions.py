"""Revisions that leave steps out, take some away, or are refused in part."""

import pytest

from replan import (
    Host,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
    build_graph,
    stream,
)
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE, given

CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: {}\n---\n"
CHANGE = CONTINUE.format("Another source.")
PLAN = """\
# Job

- [ ] 1. Find A @a
- [ ] 2. Fetch B badly @a
- [ ] 3. Compare both @b (after 1, 2)
- [ ] 4. Write it @b (after 3)
"""
REVISED = PLAN.replace("B badly @a", "B elsewhere @b")
ONLY_THE_CHANGE = "- [ ] 2. Fetch B elsewhere @b\n"
WHOLE_RUN = ["Find A", "Fetch B badly", "Fetch B elsewhere", "Compare both", "Write it"]


class Course:
    """What a run did."""

    def __init__(self):
        self.work, self.events, self.calls = [], [], []
        self.inputs = {}

    @property
    def end(self):
        return self.events[-1]

    @property
    def plan(self):
        return next(e.plan for e in reversed(self.events) if e.type == "plan_updated")

    @property
    def records(self):
        return [(e.node, e.fallback) for e in self.events if e.type == "reply_parse_failed"]

    @property
    def complaints(self):
        return "\n".join(e.problem for e in self.events if e.type == "reply_parse_failed")


async def course(feedback, plan=PLAN, *, updates=(), **options):
    seen = Course()

    def work(context):
        seen.work.append(context.task_description)
        seen.inputs[context.task_description] = sorted(context.inputs)
        if "badly" in context.task_description:
            return SpecialistResult(status="failed", error="no", retry=False)
        return "Done."

    model = ScriptedModel(
        {
            "think": always("---\ncomplexity: complex\n---\n"),
            "feedback": feedback,
            "plan_update": updates,
            "final_answer": always("What there is."),
        }
    )
    team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
    config = Team(host=Host(model=model), specialists=team, **options)
    seen.events = [event async for event in stream(build_graph(config), given(plan))]
    seen.calls = [call.node for call in model.calls]
    seen.asked = [call.messages[-1].text for call in model.calls if call.node == "plan_update"]
    return seen


async def test_steps_that_a_revision_leaves_out_are_asked_about_once_by_name():
    seen = await course([CHANGE + ONLY_THE_CHANGE, COMPLETE], updates=[REVISED])
    assert "leaves out these steps: 3 (Compare both), 4 (Write it)" in seen.asked[0]
    assert "`- [-] 3. Compare both`" in seen.asked[0]
    assert (seen.work, seen.end.outcome, seen.records) == (WHOLE_RUN, "completed", [])


async def test_what_is_left_out_twice_stays_and_that_is_on_record():
    seen = await course([CHANGE + ONLY_THE_CHANGE, COMPLETE], updates=[ONLY_THE_CHANGE])
    assert (seen.work, seen.end.outcome) == (WHOLE_RUN, "completed")
    assert seen.records == [("plan_update", "the valid part of the revision")]
    assert "3 (Compare both), 4 (Write it)" in seen.complaints


@pytest.mark.parametrize("rest", ["- ... (rest unchanged)", "\n(steps 3 and 4 stay as they are)"])
async def test_a_revision_that_says_that_it_is_not_whole_is_asked_for_once(rest):
    revised = f"{ONLY_THE_CHANGE}{rest}\n"
    seen = await course([CHANGE + revised, COMPLETE], updates=[revised])
    assert seen.calls == ["feedback", "plan_update", "feedback"]
    assert (seen.work, seen.end.outcome) == (WHOLE_RUN, "completed")
    assert [node for node, _ in seen.records] == ["plan_update"]


DROPPED = REVISED.replace("- [ ] 3.", "- [-] 3.")
WITHOUT_STEP_3 = REVISED.replace("- [ ] 3. Compare both @b (after 1, 2)\n", "").replace(
    "after 3", "after 1, 2"
)


async def test_a_step_that_its_mark_drops_goes_at_once():
    seen = await course([CHANGE + DROPPED, COMPLETE])
    assert seen.work == ["Find A", "Fetch B badly", "Fetch B elsewhere", "Write it"]
    assert seen.inputs["Write it"] == [1, 2]
    assert (seen.end.outcome, seen.calls, seen.records) == ("completed", ["feedback"] * 2, [])


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        (CHANGE + REVISED.replace("3. Compare both", "3. ~~Compare both~~"), "struck through"),
        (f"{CHANGE}{WITHOUT_STEP_3}\nStep 3 is no longer needed.\n", "leaves out these steps: 3"),
        (
            CONTINUE.format("Drop step 3; fetch B elsewhere.") + WITHOUT_STEP_3,
            "leaves out these steps: 3",
        ),
    ],
    ids=["struck through", "in its text", "in its front matter"],
)
async def test_a_step_that_words_take_away_is_asked_about_once(reply, asked):
    seen = await course([reply, COMPLETE], updates=[DROPPED])
    assert asked in seen.asked[0]
    assert seen.work == ["Find A", "Fetch B badly", "Fetch B elsewhere", "Write it"]
    assert (seen.end.outcome, seen.records) == ("completed", [])


PRICES = """\
- [ ] 1. List the products @a
- [ ] 2. Fetch the prices badly @a (after 1)
- [ ] 3. Write the report @b (after 2)
"""
RENUMBERED = "- [ ] 1. Fetch from shop B @a\n- [ ] 2. Write the report @b (after 1)\n"


async def test_a_renumbered_revision_is_not_taken_by_halves():
    seen = await course([CHANGE + RENUMBERED, COMPLETE], PRICES, updates=[RENUMBERED])
    assert "[finished_step] Step 1 is completed" in seen.asked[0]
    assert "[depends_on_refused] Step 3 waits for step 1" in seen.asked[0]
    # The report was to be made of other prices than those that there are.
    assert seen.work == ["List the products", "Fetch the prices badly"]
    assert seen.end.outcome == "partial"
    assert seen.records == [("plan_update", "the plan stays as it is")]


async def test_a_renumbered_revision_that_is_put_right_is_done():
    fixed = PRICES.replace("2. Fetch the prices badly", "2. Fetch from shop B")
    seen = await course([CHANGE + RENUMBERED, COMPLETE], PRICES, updates=[fixed])
    assert seen.work[2:] == ["Fetch from shop B", "Write the report"]
    assert (seen.end.outcome, seen.records) == ("completed", [])


async def test_a_revision_that_changes_nothing_though_a_change_was_asked_for_is_told():
    seen = await course([CHANGE + PLAN, COMPLETE], updates=[PLAN])
    assert "Your plan is the plan as it stands" in seen.asked[0]
    assert seen.records == [("plan_update", "the plan stays as it is")]


async def test_a_plan_that_is_repeated_to_go_on_is_no_question():
    goes_on = "---\nverdict: continue\nsuggested_action: execute_step\n---\n" + PLAN
    seen = await course([goes_on, COMPLETE, COMPLETE])
    assert set(seen.calls) == {"feedback"}
    assert seen.records == []


@pytest.mark.parametrize(
    "wish",
    [
        CHANGE,
        CONTINUE.format("") + "Please retry step 2 with another source.",
        CONTINUE.format("") + "| what | who |\n|---|---|\n",
        CONTINUE.format(""),
    ],
)
async def test_a_wish_without_a_plan_is_asked_for_and_else_on_record(wish):
    seen = await course([wish, wish, COMPLETE])
    assert seen.calls[:2] == ["feedback"] * 2
    assert seen.records == [("feedback", "the plan stays as it is")]


@pytest.mark.parametrize("wish", [CHANGE, CONTINUE.format("")])
@pytest.mark.parametrize("reply", ["", "I would rather not."])
async def test_with_separate_calls_a_planner_without_a_plan_is_on_record(wish, reply):
    replies = [wish, COMPLETE]
    seen = await course(replies, updates=[reply, reply], calls="separate")
    assert seen.calls.count("plan_update") == 2
    assert seen.records == [("plan_update", "the plan stays as it is")]


async def test_with_separate_calls_steps_that_the_planner_leaves_out_stay():
    seen = await course([CHANGE, COMPLETE], updates=always(ONLY_THE_CHANGE), calls="separate")
    assert seen.calls.count("plan_update") == 2
    assert (seen.work, seen.end.outcome) == (WHOLE_RUN, "completed")


@pytest.mark.parametrize("calls", ["merged", "separate"])
async def test_a_revision_of_a_plan_that_must_not_change_ends_the_run_and_is_on_record(calls):
    replies = [CHANGE + REVISED]
    seen = await course(replies, calls=calls, allow_dynamic_update=False)
    assert seen.work == WHOLE_RUN[:2]
    assert seen.records == [("feedback", "the plan stays as it is")]
    assert (seen.end.outcome, seen.calls.count("feedback")) == ("partial", 1)


async def test_a_round_in_which_only_another_step_leads_tells_of_no_new_plan():
    def work(context):
        return ask_user("Which?") if context.plan_step.id == 2 else "Done."

    team = [Specialist(name="a", intended_use="Works.", run=work)]
    config = Team(host=Host(model=ScriptedModel({})), specialists=team, round_scope="ready")
    given = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"}
    events = [event async for event in stream(build_graph(config), given)]
    plans = [event.plan for event in events if event.type == "plan_updated"]
    assert [plan.completed_steps for plan in plans] == [(1,)]


async def test_a_revision_that_is_too_large_for_a_models_is_asked_for_again_and_changes_nothing():
    huge = REVISED + "".join(f"- [ ] {n}. More of it @a\n" for n in range(5, 6_000))
    # In one piece each: a word at a time it would take as long as all other tests here.
    judged, revised = (Reply(text, chunks=(text,)) for text in (CHANGE + huge, huge))
    seen = await course([judged, judged, COMPLETE], updates=[revised, revised])
    assert "items and headings; at most 5,000 are read" in seen.complaints
    assert len(seen.plan.steps) == 4
    assert "Fetch B elsewhere" not in seen.work
