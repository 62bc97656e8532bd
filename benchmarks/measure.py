"""Why every run ends: what is left of it, as numbers that fall. See docs/limits.md."""

from dataclasses import dataclass

from replan.plan.model import TaskPlan
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.rules import waiting_steps
from replan.state.usage import Usage


@dataclass(frozen=True)
class Measure:
    """What a run has left; none of the numbers is below 0.

    Attributes:
        rounds: Rounds that may still begin.
        able_steps: Steps that are neither finished nor failed and wait for no person.
        stalls: Rounds without progress that may still come in a row.
        calls: Model calls that may still be made.
    """

    rounds: int
    able_steps: int
    stalls: int
    calls: int

    def falls_to(self, later: "Measure", *, revised: bool = False, answers: int = 0) -> bool:
        """Whether a turn of the loop has taken something away that it cannot give back.

        Every turn takes a round, and no turn gives calls back. A turn that does not revise the
        plan also finishes a step, lets one wait for a person, or takes one of the stalls that are
        left. Only a person gives anything back: a round for each time that they answer, and the
        steps that waited for it.

        Args:
            later: What is left one turn of the loop later.
            revised: Whether the plan was revised in between.
            answers: How often a person answered in between.
        """
        takes_a_round = later.rounds < self.rounds + answers and later.calls <= self.calls
        goes_on = (later.able_steps, later.stalls) < (self.able_steps, self.stalls)
        return takes_a_round and (revised or answers > 0 or goes_on)


def measure(state: EnhancedState) -> Measure:
    """Measure what a run with a plan has left."""
    limits = settings_of(state).limits
    plan = state.get("current_plan") or TaskPlan()
    waiting = waiting_steps(state)
    return Measure(
        rounds=max(0, rounds_of(state) - state.get("current_round", 0)),
        able_steps=sum(1 for step in plan.open_steps() if step.id not in waiting),
        stalls=max(0, limits.max_stalls - state.get("stalls", 0)),
        calls=max(0, limits.max_model_calls - state.get("usage", Usage()).calls),
    )
