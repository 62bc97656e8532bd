"""The limits and settings of a run: resolved once, then stored in the state."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from pydantic import Field

from replan.base.values import Value
from replan.state.knowledge import RAGOptions
from replan.state.options import MemoryOptions, SettingsPart
from replan.state.questions import Approving
from replan.state.usage import TokenCount

V = TypeVar("V", bound=Value)

RoundScope = Literal["plan", "ready", "step"]
"""How far a round reaches: all remaining steps, those that are ready now, or one step."""

OnFailure = Literal["finish", "halt"]
"""After a final failure: let independent branches finish, or start nothing more."""


OnDoubt = Literal["ask", "fail"]
"""What happens to unsafe work that may or may not have had its effect: ask the person, or fail."""

CLOSING_SHARE = 0.2
"""The share of a limit on tokens, money or seconds that is reserved for the answer."""

CLOSING_TOKENS = 20_000
"""The most tokens that are reserved."""

MOST_RETRIES = 20
"""Attempts of a step after the first, whatever its plan says: a model may have written it."""

TRIES = 3
"""Attempts at one call of a model that fails, where its model is not configured to have more."""

HOOK_SECONDS = 10.0
"""How long one hook of a callback may take before it is left alone."""

LEAST_CLOSING_REQUEST = 1_000
"""Tokens of a request that are always reserved, up to half of a limit."""

LEAST_CLOSING_REPLY = 500
"""Tokens of a reply to it."""

CLOSING_SECONDS = 60.0
"""The most seconds that are reserved."""


class Price(SettingsPart):
    """What a model costs, in any one currency, for each million tokens."""

    input: float = Field(
        ge=0, allow_inf_nan=False, description="The price of a million tokens that it reads."
    )
    output: float = Field(
        ge=0, allow_inf_nan=False, description="The price of a million tokens that it writes."
    )

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """The money that this many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


class Budget(SettingsPart):
    """What a part of a run may spend; omitted fields have no bound.

    Attributes:
        max_model_calls: Model calls.
        max_tokens: Tokens in and out.
        max_cost: Money, in the currency of the prices.
        max_seconds: Seconds at work.
    """

    max_model_calls: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, ge=0.001, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class ClosingReserve:
    """What of a run's limits only a call that can answer may use."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Limits(SettingsPart):
    """The limits of a run. A run that reaches one ends with the best partial answer.

    Attributes:
        max_rounds: Rounds of dispatch, feedback and revision.
        max_steps: Steps of the plan, open or finished; of a longer plan, only these run.
        max_model_calls: Model calls of the whole run; one is kept back for the final answer.
        max_tokens: Tokens of the whole run, in and out; a part is kept back for the answer.
        max_cost: Money for the whole run, in the currency of the prices; a part is kept back.
        max_seconds: Seconds that the run is at work, restarts included; a part is kept back.
        max_parallel_steps: Steps that run at the same time.
        max_stalls: Rounds in a row that finish no step.
        max_questions: Questions of all steps to a person; one more is refused, and its step fails.
        step_timeout: Seconds that one attempt of a step may take.
        idle_timeout: Seconds that an attempt of a step, or a call of the host's model, may take
            without a sign of work: a token, or the beginning or end of a call.
        step_retries: Attempts of a step after the first, if the step does not say.
        per_step: What each step may use in one run, all its attempts together.
    """

    max_rounds: int = Field(default=10, ge=1)
    max_steps: int = Field(default=100, ge=1)
    max_model_calls: int = Field(default=200, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_seconds: float | None = Field(default=None, ge=0.001, allow_inf_nan=False)
    max_parallel_steps: int = Field(default=16, ge=1)
    max_stalls: int = Field(default=2, ge=1)
    max_questions: int = Field(default=100, ge=0)
    step_timeout: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    idle_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    step_retries: int = Field(default=2, ge=0)
    per_step: Budget = Field(default_factory=Budget)

    @cached_property
    def whole(self) -> Budget:
        """What the whole run may spend."""
        return Budget(**{name: getattr(self, name) for name in Budget.model_fields})

    @cached_property
    def kept(self) -> ClosingReserve:
        """The part that is reserved, so that a limited run still answers.

        One call, and a fifth of each other limit, up to `CLOSING_TOKENS` and `CLOSING_SECONDS`;
        of a small limit on tokens enough for one short answer, up to half of it.
        """
        tokens = self.max_tokens or 0
        least = min(LEAST_CLOSING_REQUEST + LEAST_CLOSING_REPLY, tokens / 2)
        return ClosingReserve(
            calls=1,
            tokens=int(min(CLOSING_TOKENS, max(CLOSING_SHARE * tokens, least))),
            cost=CLOSING_SHARE * (self.max_cost or 0.0),
            seconds=min(CLOSING_SECONDS, CLOSING_SHARE * (self.max_seconds or 0.0)),
        )


class LimitHit(Value):
    """A limit of the run that prevented a step in a round; the step stays pending.

    Attributes:
        limit: The limit's name.
        value: Its value; if a resumed run has a larger one, the hit no longer counts.
        round: The round.
        specialist: Who was at it.
        usage: What they had used when they were stopped.
        reason: The figures.
        wants: What the refused call may need; 0 if no call was refused.
        kept: What was kept back for the answer.
    """

    limit: str
    value: float
    round: int = 0
    specialist: str = ""
    usage: TokenCount = TokenCount()
    reason: str = ""
    wants: float = 0.0
    kept: float = 0.0


class RunSettings(SettingsPart):
    """The settings of one run; LangGraph Studio shows them as a form.

    Attributes:
        limits: The bounds of the run.
        round_scope: Which steps a round sends: all open steps (plan), the ready ones (ready), or
            one (step).
        on_failure: After a final failure of a step, its round finishes the independent branches
            (finish), or starts nothing more (halt).
        on_doubt: If it is unknown whether unsafe work took effect, a person is asked (ask), or the
            step fails (fail).
        complexity_threshold: If a model gives a numeric score and no label, a score at or above
            this means a plan.
        allow_dynamic_update: Whether the plan may be revised.
        approval: Which plans a person must approve before they run.
        keep_prompts: Whether prompts and replies of models are stored next to the events.
        memory: What models see of earlier messages.
        rag: Which knowledge the host and the steps get.
        tenant: The tenant whose knowledge and facts a run uses.
        user: The user whose facts a run uses; required only if the team remembers facts.
    """

    limits: Limits = Field(default_factory=Limits)
    round_scope: RoundScope = "plan"
    on_failure: OnFailure = "finish"
    on_doubt: OnDoubt = "ask"
    complexity_threshold: float = Field(default=0.5, ge=0, le=1)
    allow_dynamic_update: bool = True
    approval: Approving = "never"
    keep_prompts: bool = True
    memory: MemoryOptions = Field(default_factory=MemoryOptions)
    rag: RAGOptions = Field(default_factory=RAGOptions)
    tenant: str = ""
    user: str = ""

    def overridden_by(self, request: "RunSettings | None") -> "RunSettings":
        """Return the settings with the fields that a request set, also inside `limits`."""
        return self if request is None else _overridden(self, request)


def _overridden(value: V, request: V) -> V:
    changes = {name: getattr(request, name) for name in request.model_fields_set}
    nested = {
        name: _overridden(getattr(value, name), asked)
        for name, asked in changes.items()
        if isinstance(asked, Value)
    }
    return value.replace(**{**changes, **nested})


def rounded_up(value: float) -> str:
    """A value of a limit with two digits, and no less than it is."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{max(value, math.ceil(value / unit) * unit):.12g}"
