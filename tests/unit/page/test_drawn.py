"""What the page draws of a run: every step at a place of its own, every time on one scale."""

from hypothesis import given, strategies as st

from counting import calls
from made_runs import at, attempt, event, whole
from replan.cli.page.plan_graph import BOX_HEIGHT, BOX_WIDTH, draw
from replan.cli.page.site import with_sign
from replan.log.calls import Calls
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.runs.reports import ThreadView
from replan.views.run.branches import branches_of, thread_lines
from replan.views.run.history import difference, moments
from replan.views.run.overview import money
from replan.views.run.timeline import LEGEND, timeline_of


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
    places = {box.step.id: box for box in graph.boxes}
    assert [box.step.id for box in graph.boxes] == [step.id for step in plan.steps]
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


def test_an_attempt_that_was_killed_looks_so_also_when_a_person_was_asked_about_it_later():
    # Who resumes the run after the kill, 60 s from its beginning, asks what attempt 1 did.
    about = {"step_id": 2, "specialist": "worker", "attempt": 1, "kind": "unknown_outcome"}
    asks = event(7, 62, "input_requested", key="2/worker/1", **about)
    events = (*whole().events[:5], event(6, 60, "run_resumed"), asks)
    ledger = (attempt(1, 1, 0, 10), attempt(2, 1, 20, None, "unknown_outcome"))
    report = whole(ledger=ledger, events=events, outcome="waiting", last_seen_at=at(70))
    killed = next(row for row in timeline_of(report).rows if row.step == 2)
    kinds = [bar.kind for bar in killed.bars if bar.kind != "planned"]
    assert kinds == ["killed", "waiting"]
    assert killed.seconds is None
    assert {bar.kind for row in timeline_of(report).rows for bar in row.bars} <= set(LEGEND)


def test_a_timeline_marks_the_longest_chain_of_steps():
    steps = tuple(
        PlanStep(id=n, description="s", dependencies=(1,) * (n > 1), status=StepStatus.COMPLETED)
        for n in (1, 2, 3)
    )
    ledger = (attempt(1, 1, 0, 5), attempt(2, 1, 5, 30), attempt(3, 1, 5, 20))
    report = whole(plan=TaskPlan(steps=steps), ledger=ledger)
    assert [row.step for row in timeline_of(report).rows if row.is_critical] == [1, 2]


def test_boxes_that_follow_each_other_stand_in_the_order_that_crosses_least():
    tops = [PlanStep(id=n, description="t") for n in (1, 2, 3)]
    below = [PlanStep(id=n, description="b", dependencies=(14 - n - 10,)) for n in (11, 12, 13)]
    graph = draw(TaskPlan(steps=(*tops, *below)), {})
    rows = {box.step.id: box.y for box in graph.boxes}
    assert all(rows[edge.source] == rows[edge.target] for edge in graph.edges)


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


def test_a_cost_has_one_rounding_its_currency_and_signs_for_bounds():
    told = {
        "–": Calls(),
        "0.009325 EUR": Calls(calls=1, known_cost=0.009325),
        "≥ 0.002775 EUR": Calls(calls=1, unpriced_calls=1, known_cost=0.002775),
        "≤ 0.05216 EUR": Calls(calls=1, uncounted_cost=0.05, known_cost=0.052157),
        "0.00000123 EUR": Calls(calls=1, known_cost=1.23e-6),
        "12.34 EUR": Calls(calls=1, known_cost=12.34),
        "unknown": Calls(calls=1, unpriced_calls=1),
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
    first, second, third = branches_of(report)[2].attempts
    assert [first.error, second.error, third.error] == [*errors[:2], ""]
    assert third.text == "failed: the same error as in attempt 1"
    first, _, third = (line for _, line in moments(report, has_failures=True) if "attempt" in line)
    assert first == "step 2 worker, attempt 1: failed: PhaseError: Thread 'sub_9f9f9f9f…': no"
    assert third.startswith("step 2 worker, attempt 3: failed: the same")


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_difference_has_both_texts_in_it(before, after):
    lines = [*difference(before, after)]
    assert [line[2:] for line in lines if line[0] != "+"] == before
    assert [line[2:] for line in lines if line[0] != "-"] == after


def test_threads_are_told_by_their_depth_and_an_error_where_it_came_from():
    def view(depth, step=1, **fields):
        said = {"phase": "p", "phases": ("o", "p"), "messages": 1}
        return ThreadView(step_id=step, specialist="w", depth=depth, **{**said, **fields})

    broken = [view(0, error="no"), view(1, error="no", is_replaced=True)]
    assert [*thread_lines([*broken, view(0, 2)], 1)] == [
        (0, "thread of w: p, 1 message, failed (o > p)"),
        (1, "sub-thread: p, 1 message, replaced by a retry, failed: no (o > p)"),
    ]
    assert len([*thread_lines([view(0), view(0, 2)])]) == 2
