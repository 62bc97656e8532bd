"""What the page draws of a run: every step at a place of its own, every time on one scale."""

from datetime import timedelta

from hypothesis import given, strategies as st

from counting import calls
from made_runs import NOON, STEPS, answered, at, attempt, call, event, whole
from replan.log.calls import Calls
from replan.plan.model import Condition, PlanStep, StepStatus, TaskPlan
from replan.runs.reports import ThreadView
from replan.state.questions import Question
from replan.ui.drawn.columns import moment_of, with_sign
from replan.ui.drawn.graph import BOX_HEIGHT, BOX_WIDTH, draw, graph_of, step_states
from replan.ui.drawn.revision_diffs import difference, lines_of
from replan.ui.drawn.timeline import timeline_of
from replan.ui.drawn.tree import tree_of
from replan.ui.step_page import threads_of
from replan.views.run.history import history_lines, why_text
from replan.views.run.overview import money


@st.composite
def plans(draw):
    count = draw(st.integers(0, 25))
    steps = []
    for number in range(1, count + 1):
        earlier = st.lists(st.integers(1, number - 1), max_size=4, unique=True)
        after = draw(earlier) if number > 1 else []
        steps.append(PlanStep(id=number, description=f"s{number}", dependencies=tuple(after)))
    return TaskPlan(steps=tuple(draw(st.permutations(steps))))


@given(plans())
def test_boxes_never_overlap_and_stand_behind_all_that_they_wait_for(plan):
    graph = draw(plan, {})
    places = {box.step: box for box in graph.boxes}
    assert [box.step for box in graph.boxes] == [step.id for step in plan.steps]
    for box in graph.boxes:
        assert 0 <= box.x <= graph.width - BOX_WIDTH
        assert 0 <= box.y <= graph.height - BOX_HEIGHT
        same = [one for one in graph.boxes if one.x == box.x and one is not box]
        assert all(abs(one.y - box.y) >= BOX_HEIGHT for one in same)
    joined = {(edge.source, edge.target) for edge in graph.edges}
    awaited = {(each, step.id) for step in plan.steps for each in step.awaits}
    assert joined <= awaited
    # A line that is not drawn follows from others that are, and none that is drawn does.
    assert all(_is_reached(pair, joined) for pair in awaited)
    assert not any(_is_reached(pair, joined - {pair}) for pair in joined)
    assert all(places[a].x + BOX_WIDTH < places[b].x for a, b in joined)


def _is_reached(pair, joined):
    first, last = pair
    ends, behind = set(), {first}
    while behind:
        ends |= behind
        behind = {b for a, b in joined if a in behind} - ends
    return last in ends


def test_a_plan_of_500_steps_is_drawn_with_few_calls():
    steps = tuple(
        PlanStep(
            id=n,
            description=f"Step {n}",
            dependencies=tuple({max(1, n - 7), max(1, n - 3 - n % 4)}) if n > 8 else (),
        )
        for n in range(1, 501)
    )
    plan = TaskPlan(steps=steps)
    graphs = []
    assert calls(lambda: graphs.append(draw(plan, {}))) < 300 * len(steps)
    assert len(graphs[0].boxes) == 500


def test_a_timeline_marks_the_longest_chain_of_steps():
    steps = tuple(
        PlanStep(id=n, description="s", dependencies=(1,) * (n > 1), status=StepStatus.COMPLETED)
        for n in (1, 2, 3)
    )
    ledger = (attempt(1, 1, 0, 5), attempt(2, 1, 5, 30), attempt(3, 1, 5, 20))
    report = whole(plan=TaskPlan(steps=steps), ledger=ledger)
    assert [row.step for row in timeline_of(report).rows if row.is_critical] == [1, 2]


def test_a_step_whose_doubt_is_asked_about_waits_for_a_person():
    doubt = Question(key="2/worker/1", kind="unknown_outcome", text="Done?", step_id=2)
    steps = (STEPS[0], STEPS[1].replace(status=StepStatus.PENDING), STEPS[2])
    doubtful = whole(
        outcome="running",
        plan=TaskPlan(steps=steps),
        pending_questions=(doubt,),
        ledger=(attempt(2, 1, 20, None, "unknown_outcome"),),
    )
    assert step_states(doubtful)[2].text == "waits for a person"
    assert why_text(doubtful) == "1 answer needed"
    assert step_states(whole())[3].text == "not begun: 2 failed"


def test_boxes_that_follow_each_other_stand_in_the_order_that_crosses_least():
    tops = [PlanStep(id=n, description="t") for n in (1, 2, 3)]
    below = [PlanStep(id=n, description="b", dependencies=(14 - n - 10,)) for n in (11, 12, 13)]
    graph = draw(TaskPlan(steps=(*tops, *below)), {})
    rows = {box.step: box.y for box in graph.boxes}
    assert all(rows[edge.source] == rows[edge.target] for edge in graph.edges)


def test_a_box_says_how_its_step_stands_and_for_whom_it_waits():
    told = {box.step: box.standing for box in graph_of(whole(outcome="running")).boxes}
    assert [told[1].state, told[2].state] == ["done", "failed"]
    assert told[3].text == "blocked: 2 failed"
    steps = (
        STEPS[0],
        STEPS[1].replace(status=StepStatus.PENDING),
        STEPS[2],
        PlanStep(id=4, description="Mend", condition=Condition(step=2, outcome="failed")),
    )
    changes = {"modified": {"3": {"description": "Tell"}}}
    run = whole(
        outcome="waiting",
        plan=TaskPlan(title="Buy", steps=steps),
        ledger=(attempt(1, 1, 1, 10), attempt(2, 1, 20, 30, "waiting")),
        events=(*whole().events, event(11, 70, "plan_updated", version=2, changes=changes)),
        pending_questions=(Question(key="2/worker/0", kind="question", text="Pay?", step_id=2),),
    )
    graph = graph_of(run)
    told = {box.step: (box.standing.state, box.standing.text) for box in graph.boxes}
    assert told[2] == ("waiting", "waits for a person")
    assert told[3] == ("pending", "waits for 2")
    assert {box.step: box.standing.changed for box in graph.boxes}[
        3
    ] == "changed in version 2 by the host"
    assert [edge.condition for edge in graph.edges if edge.target == 4] == ["failed"]
    killed = whole(outcome="interrupted", plan=TaskPlan(steps=steps), ledger=whole().ledger[:3])
    states = {box.step: box.standing.state for box in graph_of(killed).boxes}
    assert states[2] == "interrupted"


def test_the_timeline_has_each_attempt_each_wait_and_the_time_between_processes():
    timeline = timeline_of(whole())
    rows = {row.step: row for row in timeline.rows[2:]}
    assert [bar.kind for bar in rows[1].bars] == ["planned", "failed", "done"]
    assert rows[1].bars[1].text == "worker, attempt 1: failed, 9.00 s"
    assert (rows[1].bars[1].left, rows[1].bars[1].width) == (1, 9)
    # The attempt that a kill cut off ends where work did.
    assert [bar.kind for bar in rows[2].bars] == ["planned", "cut-off", "failed"]
    assert rows[2].bars[1].left + rows[2].bars[1].width == 25
    assert rows[2].bars[1].text == "worker, attempt 1: cut off"
    assert [(bar.kind, bar.left, bar.width) for bar in timeline.pauses] == [("unknown", 25, 35)]
    assert [seconds for _, seconds in timeline.ticks] == [0, 30, 60, 90]
    assert rows[3].bars == ()
    asks = (attempt(1, 1, 1, 10, "waiting"), attempt(1, 2, 40, 50))
    asked = timeline_of(whole(ledger=asks))
    assert [(bar.kind, bar.width) for bar in asked.rows[2].bars][1:] == [
        ("done", 9),
        ("waiting", 30),
        ("done", 10),
    ]
    assert asked.rows[2].bars[2].text == "worker, attempt 1: asked, then went on, 30.00 s"


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=8),
    st.floats(0, 1e6),
)
def test_bars_and_ticks_never_leave_the_drawing(times, ended):
    ledger = tuple(attempt(1, n, min(pair), max(pair)) for n, pair in enumerate(times, start=1))
    timeline = timeline_of(whole(ledger=ledger, last_seen_at=at(ended)))
    bars = [bar for row in timeline.rows for bar in row.bars] + [*timeline.pauses]
    assert all(bar.left >= 0 and bar.left + bar.width <= 100.001 for bar in bars)
    assert 0 < len(timeline.ticks) <= 9
    assert all(0 <= left <= 100 for left, _ in timeline.ticks)


def test_the_tree_has_the_tokens_the_price_and_the_addresses_of_prompts():
    prompt = [{"role": "user", "length": 9000, "ref": "abc"}]
    called = event(4, 14, "model_invoked", **call(1, 2, "a", model="m", prompt=prompt))
    reply = {"role": "assistant", "length": 5, "ref": "def"}
    ended = event(5, 15, "model_completed", **answered(1, 2, "a", 0.25), reply=reply)
    tool = {"tool": "price", "arguments": {"of": "go…"}, "refs": {"arguments": "ghi"}}
    cut_off = event(6, 21, "tool_invoked", **call(2, 1, "t", **tool), effects="unsafe")
    host, first, second, third = tree_of(whole(events=(called, ended, cut_off)))
    assert (host.step, host.calls) == (0, ())
    model = first.attempts[1].calls[0]
    assert (model.seq, model.state, model.input_tokens, model.cost) == (5, "done", 10, 0.25)
    assert (model.prompt[0].ref, model.prompt[0].length) == ("abc", 9000)
    assert model.reply is not None
    assert model.reply.ref == "def"
    assert first.spent.tokens == 15
    assert (model.at, model.text) == (at(14), "done")
    gone = second.attempts[0].calls[0]
    assert (gone.kind, gone.state, gone.effects) == ("tool", "cut off", "unsafe")
    assert (gone.shown, gone.error) == ('price(of="go…")', "")
    assert gone.arguments_text is not None
    assert gone.arguments_text.ref == "ghi"
    assert third.attempts == ()


def test_a_call_says_what_it_was_called_with_why_it_failed_and_what_became_of_its_reply():
    asked = [
        {"role": "system", "ref": "s", "length": 1},
        {"role": "human", "ref": "h", "length": 1},
    ]
    again = [*asked, *({"role": each, "ref": each, "length": 1} for each in ("ai", "human"))]
    failed = {"status": "failed", "result": "Error: no quote", "seconds": 1}
    events = (
        event(1, 1, "model_invoked", **call(1, 2, "a", model="m", prompt=asked)),
        event(2, 2, "model_completed", **answered(1, 2, "a")),
        event(3, 3, "model_invoked", **call(1, 2, "b", model="m", prompt=again, is_reprompt=True)),
        event(4, 4, "model_completed", **answered(1, 2, "b")),
        event(
            5, 5, "tool_completed", **call(1, 2, "t", tool="price", arguments={"of": 1}), **failed
        ),
    )
    first, second, tool = tree_of(whole(events=events))[1].attempts[1].calls
    assert (first.state, first.text) == ("unusable", "not usable, asked again")
    assert second.text == "done"
    assert (tool.text, tool.shown, tool.error) == ("failed", "price(of=1)", "no quote")
    remarks = step_states(whole(events=events))[1].remarks
    assert remarks == "1 tool call failed, 1 reply not usable"
    # A conversation of several turns is none of it.
    third = event(3, 3, "model_invoked", **call(1, 2, "b", prompt=again))
    report = whole(events=(*events[:2], third, *events[3:]))
    assert "not usable" not in step_states(report)[1].remarks


def test_a_cost_has_one_rounding_its_currency_and_signs_for_bounds():
    told = {
        "–": Calls(),
        "0.009325 EUR": Calls(number=1, known_cost=0.009325),
        "≥ 0.002775 EUR": Calls(number=1, unpriced=1, known_cost=0.002775),
        "≤ 0.05216 EUR": Calls(number=1, uncounted_cost=0.05, known_cost=0.052157),
        "0.00000123 EUR": Calls(number=1, known_cost=1.23e-6),
        "12.34 EUR": Calls(number=1, known_cost=12.34),
        "unknown": Calls(number=1, unpriced=1),
    }
    assert {with_sign(money(each, "EUR")): each for each in told.values()} == told


def test_an_error_is_told_once_and_pointed_to_elsewhere():
    errors = [f"PhaseError: Thread 'sub_{each * 16}': no" for each in ("9f", "ab")]
    errors.insert(1, "RuntimeError: no")
    ledger = tuple(
        attempt(2, number, number, number + 1, "failed").replace(error=error)
        for number, error in enumerate(errors, start=1)
    )
    report = whole(ledger=ledger)
    first, second, third = tree_of(report)[2].attempts
    assert [first.error, second.error, third.error] == [*errors[:2], ""]
    assert third.text == "failed: the same error as in attempt 1"
    lines = [each for each in history_lines(report, has_failures=True) if "attempt" in each]
    shown = moment_of(lines[0], {2})
    assert shown.step == 2
    assert shown.text == " worker, attempt 1: failed: PhaseError: Thread 'sub_9f9f9f9f…': no"
    assert moment_of(lines[2], {}).text.startswith("step 2 worker, attempt 3: failed: the same")


def test_what_the_host_did_between_the_steps_is_named():
    kinds = {
        0: "thinking_started",
        10: "plan_created",
        40: "specialist_completed",
        60: "feedback_generated",
        65: "task_completed",
    }
    events = tuple(event(n, at_, kind) for n, (at_, kind) in enumerate(kinds.items(), 1))
    bars = timeline_of(whole(events=events, ledger=())).rows[1].bars
    assert [(bar.text, bar.left, bar.width) for bar in bars] == [
        ("the host plans", 0, 10),
        ("the host judges", 40, 20),
        ("the host answers", 60, 5),
    ]


def test_a_revision_is_a_difference_of_lines_with_who_and_why():
    outline = [
        {"id": 1, "description": "Book", "assigned_to": "ann"},
        {"id": 2, "description": "Pay"},
    ]
    added = {"index": 1, "step": {"id": 3, "description": "Ask", "dependencies": [1]}}
    changes = {"modified": {"1": {"description": "Rent"}}, "added": [added], "removed": [2]}
    events = (
        event(1, 1, "plan_created", version=1, title="Trip", outline=outline),
        event(2, 2, "plan_updated", version=1, changes={}),
        event(3, 3, "answer_received", key="plan", kind="plan", action="edited", by="petra"),
        event(4, 3, "plan_updated", version=2, by="person", changes=changes),
    )
    first, second = whole(events=events).revisions
    assert first.is_first
    assert [line.text for line in lines_of(first)] == ["# Trip", "1. Book @ann", "2. Pay"]
    assert (first.by, second.by, second.version) == (
        "handed in with the request (user=eva)",
        "petra",
        2,
    )
    assert [(line.kind, line.text) for line in lines_of(second)] == [
        ("same", "# Trip"),
        ("removed", "1. Book @ann"),
        ("removed", "2. Pay"),
        ("added", "1. Rent @ann"),
        ("added", "3. Ask (after 1)"),
    ]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_difference_has_both_texts_in_it(before, after):
    lines = [*difference(before, after)]
    assert [line.text for line in lines if line.kind != "added"] == before
    assert [line.text for line in lines if line.kind != "removed"] == after


def test_threads_are_trees_of_their_depth():
    def view(depth, step=1):
        said = {"phase": "p", "phases": (), "messages": 1}
        return ThreadView(step_id=step, specialist="w", depth=depth, **said)

    first, second = threads_of([view(0), view(1), view(2), view(1), view(0, 2)])
    assert [len(each.below) for each in first.below] == [1, 0]
    assert (second.thread.step_id, second.below) == (2, ())
    assert len(threads_of([view(0), view(0, 2)], step=2)) == 1


def test_a_run_without_a_plan_is_drawn_too():
    report = whole(plan=None, ledger=(), events=(), last_seen_at=NOON + timedelta(0))
    assert graph_of(report).boxes == ()
    assert len(timeline_of(report).rows) == 2
    assert report.revisions == ()
