"""What of an event a person may not expect: it stands in the state, and at the end of a run."""

from replan.events.types import (
    BaseEvent,
    LimitReached,
    PlanDoubtful,
    ReplyUnreadable,
    StepsRouted,
)
from replan.state.cuts import CUTS


def warnings_in(event: BaseEvent) -> tuple[str, ...]:
    """The warnings of an event, a sentence each."""
    match event:
        case StepsRouted(chosen=chosen):
            return tuple(
                f"Step {step} names nobody; by the cards it goes to @{name}."
                for step, name in chosen.items()
            )
        case PlanDoubtful(overlooked=doubts):
            return tuple(f"In the plan, {each}." for each in doubts)
        case ReplyUnreadable():
            told = f"The reply of {event.node} could not be read, so this is done: {event.fallback}"
            return (f"{told}. {event.complaint}",)
        case LimitReached(limit=limit) if limit in CUTS:
            return (f"The answer is not whole: {CUTS[limit]}.",)
        case _:
            return ()
