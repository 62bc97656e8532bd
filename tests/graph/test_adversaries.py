"""Models that never finish, always revise or talk nonsense: every run ends, with an answer."""

from hypothesis import given, settings, strategies as st

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    run_sync,
)
from replan.testing import ScriptedModel, always

STEP = st.builds(
    "- [{}] {}. {} {} ({})".format,
    st.sampled_from([" ", "x", "~", "!", "-", "?"]),
    st.integers(0, 6),
    st.sampled_from(["Do it", "Do more", "", "做 it"]),
    st.sampled_from(["@a", "@b", "@nobody", "@a @b", ""]),
    st.sampled_from(
        ["", "after 1", "after 1, 2", "if 1 failed", "after 9", "optional", "retries 0"]
    ),
)
PLANS = st.lists(STEP, max_size=6).map("\n".join)
VERDICTS = st.sampled_from(["complete", "continue", "maybe", ""])
FEEDBACK = st.builds(
    "---\nverdict: {}\nupdate: {}\n---\n{}".format, VERDICTS, st.text(max_size=10), PLANS
)
THINKING = st.builds(
    "---\ncomplexity: {}\nscore: {}\n---\n{}".format,
    st.sampled_from(["simple", "complex", "moderate", "?"]),
    st.sampled_from(["0.1", "0.9", "many"]),
    PLANS,
)
NONSENSE = st.one_of(st.text(max_size=30), PLANS, st.just("{"), st.just("```"))
STATUSES = st.lists(st.sampled_from([*ExecutionStatus, None]), min_size=1, max_size=5)


class Talker:
    """Says what it was given, over and over."""

    def __init__(self, replies):
        self.replies, self.count = replies, 0

    def __call__(self, messages):
        self.count += 1
        return self.replies[self.count % len(self.replies)]


def talk(*kinds):
    return st.lists(st.one_of(*kinds), min_size=1, max_size=4)


@settings(max_examples=20)  # test_termination.py plays whole teams
@given(
    thinking=talk(THINKING, NONSENSE),
    planning=talk(PLANS, NONSENSE),
    judging=talk(FEEDBACK, NONSENSE),
    statuses=STATUSES,
    scope=st.sampled_from(["plan", "ready", "step"]),
    calls=st.sampled_from(["merged", "separate"]),
    on_failure=st.sampled_from(["finish", "halt"]),
)
def test_every_run_ends_within_its_limits_and_with_an_answer(
    thinking, planning, judging, statuses, scope, calls, on_failure
):
    count = 0

    def work(context):
        nonlocal count
        count += 1
        status = statuses[count % len(statuses)]
        if status is None:
            return SpecialistResult(replan_needed=True)
        return SpecialistResult(status=status, retry=False)

    script = {
        "think": [always(Talker(thinking))],
        "direct_answer": [always(Talker(planning))],
        "plan_creation": [always(Talker(planning))],
        "feedback": [always(Talker(judging))],
        "plan_update": [always(Talker(planning))],
        "final_answer": [always(Talker(planning))],
    }
    limits = Limits(max_rounds=6, max_model_calls=20, max_steps=8)
    with ScriptedModel(script) as model:
        graph = build_graph(
            Team(
                host=Host(model=model),
                specialists=[Specialist(name=n, intended_use="Works.", run=work) for n in "ab"],
                limits=limits,
                round_scope=scope,
                calls=calls,
                on_failure=on_failure,
            )
        )
        state = run_sync(graph, "Do the work.").state
    assert state["is_completed"]
    assert state["final_answer"] is not None
    assert state["outcome"] in {"answered", "completed", "partial", "failed"}
    assert len(model.calls) <= limits.max_model_calls
    assert state["current_round"] <= limits.max_rounds
