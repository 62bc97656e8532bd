"""What can be known of a plan before it runs, and that no run ever exceeds it."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.callbacks import StreamingStdOutCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from replan import Budget, Host, Limits, Specialist, Team, run_sync
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.graph.build import host_graph
from replan.models.providers.chat_models import LangChainModels
from replan.plan import PlanDocument, TaskPlan
from replan.state.limits import MOST_RETRIES
from replan.views.ahead.preview import (
    CALLS_PER_QUESTION,
    CALLS_PER_REPLY,
    CALLS_PER_TRY,
    USUAL_RETRIES,
    KnownTeam,
    calls_of_question,
    calls_of_reply,
    calls_of_try,
    preview,
    usual_calls,
    worst_case_calls,
)

DIAMOND = """\
# Diamond

- [ ] 1. Ask @a
- [ ] 2. Look @a (after 1; retries 0)
- [ ] 3. Search @b (after 1)
- [ ] 4. Join @a @b (after 2, 3)
"""
LIMITS = Limits(max_model_calls=10_000)
# A model without a client has no further tries.
ONE_REPLY = calls_of_reply(0)
BARE = {
    "per_try": dict.fromkeys("ab", calls_of_try(ONE_REPLY)),
    "per_question": calls_of_question(0),
}
QUESTION = CALLS_PER_QUESTION
JUDGEMENT = 2 * QUESTION - 1


def plan_of(text: str) -> TaskPlan:
    return PlanDocument.parse(text).plan


def unrevised(text, limits=LIMITS, *, merged=True, **known):
    team = KnownTeam(limits=limits, revisable=False, **known)
    return worst_case_calls(plan_of(text), team, merged=merged)


def usual(text, limits=LIMITS, *, merged=True, **known):
    return usual_calls(plan_of(text), KnownTeam(limits=limits, **known), merged=merged)


def test_an_empty_plan_has_a_preview():
    ahead = preview(TaskPlan(), LIMITS)
    assert (ahead.steps, ahead.width, ahead.critical_path) == (0, 0, ())


def test_a_run_in_which_all_goes_well_takes_a_call_for_each_seat_and_one_to_join():
    assert usual(DIAMOND) == 5 + 1
    assert usual(DIAMOND, merged=False) == 5 + 3
    assert usual(DIAMOND, per_try={"A": 0}) == 2 + 1
    assert usual(DIAMOND, Limits(max_model_calls=4)) == 4


def test_the_worst_case_follows_its_formula():
    seats = (3 + 1 + 3 + 3 + 3) * CALLS_PER_TRY
    rounds = 5 + LIMITS.max_stalls
    total = seats + rounds * JUDGEMENT + QUESTION
    assert unrevised(DIAMOND) == total
    assert unrevised(DIAMOND, merged=False) == total + JUDGEMENT


def test_a_model_that_is_given_by_name_tries_as_often_as_the_formula_says():
    assert LangChainModels().max_retries == USUAL_RETRIES
    assert calls_of_reply(USUAL_RETRIES) == CALLS_PER_REPLY


def test_steps_that_never_start_cost_nothing():
    start = "- [!] 1. A @a\n- [ ] 2. B @a (retries 0)\n"
    blocked = "- [ ] 3. C @a (after 1)\n"
    assert unrevised(start + blocked) == unrevised(start)
    assert unrevised(start + "- [ ] 3. C @a\n", Limits(max_steps=2)) == unrevised(start)


def test_of_two_opposite_conditions_only_the_dearer_side_counts():
    start = "- [ ] 1. A @a\n"
    failed = "- [ ] 2. B @a @b (if 1 failed; retries 0)\n"
    completed = "- [ ] 3. C @a (if 1 completed; retries 1)\n- [ ] 4. D @a (if 1 completed)\n"
    assert unrevised(start + failed + completed) == unrevised(start + completed)
    dear = failed.replace("retries 0", "retries 9")
    # The dearer side counts in calls, and the side with more seats in rounds.
    assert unrevised(start + dear + completed) == unrevised(start + dear)
    other = "- [ ] 5. E @a\n- [ ] 6. F @a (if 5 failed)\n"
    many = LIMITS.replace(max_rounds=1)
    seats = (3 + max(2, 2 + 3) + 3 + 3) * CALLS_PER_TRY
    total = seats + JUDGEMENT + QUESTION
    assert unrevised(start + failed + completed + other, many) == total


def test_steps_whose_condition_cannot_hold_any_more_cost_nothing():
    text = "- [x] 1. A @a\n- [ ] 2. B @a (if 1 failed)\n"
    assert unrevised(text) == unrevised("- [x] 1. A @a\n")
    assert usual(text) == 1


def test_where_all_goes_well_no_step_that_waits_for_a_failure_runs():
    text = "- [ ] 1. A @a\n- [ ] 2. B @a (if 1 failed)\n- [ ] 3. C @a (if 1 completed)\n"
    assert usual(text) == 2 + 1
    assert usual(text.replace("[ ] 1", "[!] 1")) == 1 + 1


def test_a_step_without_a_specialist_costs_as_much_as_the_dearest():
    text = "- [ ] 1. A (retries 0)\n"
    base = unrevised(text, per_try={"cheap": 0})
    assert unrevised(text, per_try={"cheap": 0, "chat": 2}) == base + 2
    assert unrevised(text, per_try={"cheap": 0, "tools": None}) == LIMITS.max_model_calls


@pytest.mark.parametrize("text", ["- [ ] 1. A @tools\n", "- [ ] 1. A @TOOLS\n"])
def test_where_nobody_knows_only_the_limit_bounds(text):
    assert unrevised(text, per_try={"tools": None}) == LIMITS.max_model_calls


def test_the_budget_of_a_step_bounds_its_tries_even_where_nobody_knows_their_calls():
    text = "- [ ] 1. A @tools\n- [ ] 2. B @chat (retries 0)\n"
    limits = LIMITS.replace(max_rounds=1, per_step=Budget(max_model_calls=3))
    assert (
        unrevised(text, limits, per_try={"tools": None, "chat": 2}) == 3 + 2 + JUDGEMENT + QUESTION
    )


def test_no_plan_can_ask_for_any_number_of_tries():
    limits = LIMITS.replace(max_rounds=1)
    asked = "- [ ] 1. A @a (retries 1000000)\n"
    tries = (MOST_RETRIES + 1) * CALLS_PER_TRY
    assert unrevised(asked, limits) == tries + JUDGEMENT + QUESTION


def test_a_plan_that_may_be_revised_is_bounded_by_the_limit_alone():
    assert worst_case_calls(plan_of(DIAMOND), KnownTeam(limits=LIMITS)) == LIMITS.max_model_calls
    assert unrevised(DIAMOND, Limits(max_model_calls=7)) == 7


class ServerError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


class Adversary(BaseChatModel):
    """Refuses to stream, breaks off and talks nonsense, as chance or a script will have it."""

    _next: object = PrivateAttr()
    calls: int = 0

    def __init__(self, next_reply):
        super().__init__(cache=False)
        self._next = next_reply

    @property
    def _llm_type(self):
        return "adversary"

    def _reply(self, *, streamed):
        self.calls += 1
        reply = self._next(streamed=streamed)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage(**said(self._reply(streamed=False)))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        yield ChatGenerationChunk(message=AIMessageChunk(**said(self._reply(streamed=True))))


def said(reply):
    """A text as it ends; one with an ellipsis was cut off."""
    end = "length" if reply.endswith("...") else "stop"
    return {"content": reply, "response_metadata": {"finish_reason": end}}


def calls_of(text, next_reply, limits, *, merged=True, revisable=False):
    # What one server was found not to do, another one is asked for all the same.
    model, other = Adversary(next_reply), Adversary(next_reply)
    config = Team(
        host=Host(model=model),
        specialists=[Specialist(name=n, intended_use="x", chat_model=other) for n in "ab"],
        limits=limits,
        calls="merged" if merged else "separate",
        allow_dynamic_update=revisable,
    )
    services = replace(services_of(config, models_from_environment()), retry_wait=0)
    graph = host_graph(services).compile()
    # Only who listens has streams asked for, which a server can refuse.
    listening = {"callbacks": [StreamingStdOutCallbackHandler()]}
    state = run_sync(graph, {"messages": [("user", "Go.")], "plan": text}, config=listening).state
    assert state["usage"].calls == model.calls + other.calls
    return model.calls + other.calls


CONTINUE = "---\nverdict: continue\nfeedback: More.\nupdate: Once more.\n---\n- [ ] 1. Again @a\n"
REPLIES = [
    *(ServerError(status) for status in (400, 429, 501, 503)),
    "- - [x",
    "",
    CONTINUE,
    "---\nverdict: complete\n---\nDone.",
    "---\nstatus: failed\n---\nNo.",
    "---\nreplan_needed: true\n---\nYes, but.",
    "One thing is...",
]


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000),
    text=st.sampled_from(
        [
            DIAMOND,
            "- [ ] 1. A @a\n",
            "- [ ] 1. A @a @b (retries 1)\n- [ ] 2. B @b (after 1)\n",
            "- [ ] 1. A @a\n- [ ] 2. B @b (if 1 failed)\n- [ ] 3. C @a (if 1 completed)\n",
        ]
    ),
    merged=st.booleans(),
    stalls=st.integers(1, 3),
)
def test_no_run_of_a_plan_exceeds_the_worst_case(seed, text, merged, stalls):
    chance = random.Random(seed)  # noqa: S311 - a test needs no secret
    weights = [chance.random() ** 3 for _ in REPLIES]

    def next_reply(*, streamed):
        reply = chance.choices(REPLIES, weights)[0]
        # A host that cannot think at all ends a run with an error, which is no run to count.
        if not merged and isinstance(reply, Exception):
            return CONTINUE
        return reply

    limits = Limits(step_retries=1, max_stalls=stalls)
    used = calls_of(text, next_reply, limits, merged=merged)
    assert used <= unrevised(text, limits, merged=merged, **BARE)


def test_the_worst_case_can_happen():
    script = iter(
        [
            *(ServerError(501), "Half a..."),  # the step, whose result is cut off
            ServerError(400),  # and is refused for good when it is asked for again
            *(ServerError(501), ServerError(503)),
            "",  # an unreadable judgement, which is asked for again in vain
        ]
    )

    def next_reply(*, streamed):
        return next(script, ServerError(501 if streamed else 503))

    limits = Limits(max_rounds=1, step_retries=0)
    text = "- [ ] 1. A @a\n"
    assert calls_of(text, next_reply, limits) == unrevised(text, limits, **BARE)
    assert unrevised(text, limits, **BARE) == 3 + 7 + 4
