"""What a run may spend and what it may set: resolved once, then kept in the state."""

from typing import Literal

from pydantic import Field

from replan.plan.model import Value

RoundScope = Literal["plan", "ready", "step"]
"""How far a round reaches: all remaining steps, those that are ready now, or one step."""

OnFailure = Literal["finish", "halt"]
"""After a final failure: let independent branches finish, or start nothing more."""


class Limits(Value):
    """The bounds of a run; reaching one ends the run with the best partial answer.

    Attributes:
        max_rounds: Rounds of dispatch, feedback and revision.
        max_steps: Steps of the plan, open or finished; a longer plan runs up to it.
        max_model_calls: Model calls of the whole run; one is kept back for the final answer.
        max_parallel_steps: Steps that run at the same time.
        max_stalls: Rounds in a row that finish no step.
        step_timeout: Seconds that one try of a step may take.
        step_retries: Tries of a step beside the first, where the step does not say.
    """

    max_rounds: int = Field(default=10, ge=1)
    max_steps: int = Field(default=100, ge=1)
    max_model_calls: int = Field(default=200, ge=1)
    max_parallel_steps: int = Field(default=16, ge=1)
    max_stalls: int = Field(default=2, ge=1)
    step_timeout: float = Field(default=300.0, gt=0)
    step_retries: int = Field(default=2, ge=0)


class RunSettings(Value):
    """What one run may set; LangGraph Studio shows it as a form.

    Attributes:
        limits: The bounds of the run.
        round_scope: How far a round reaches.
        on_failure: What a final failure of a step does to the rest of its round.
        complexity_threshold: A numeric score at or above it means a plan, where the label is
            missing.
        allow_dynamic_update: Whether the plan may be revised.
    """

    limits: Limits = Field(default_factory=Limits)
    round_scope: RoundScope = "plan"
    on_failure: OnFailure = "finish"
    complexity_threshold: float = Field(default=0.5, ge=0, le=1)
    allow_dynamic_update: bool = True

    def overridden_by(self, request: "RunSettings | None") -> "RunSettings":
        """Take the fields that a request set, one by one, also inside `limits`."""
        if request is None:
            return self
        changes = {name: getattr(request, name) for name in request.model_fields_set}
        if "limits" in changes:
            asked = request.limits
            changes["limits"] = self.limits.replace(
                **{name: getattr(asked, name) for name in asked.model_fields_set}
            )
        return self.replace(**changes)
