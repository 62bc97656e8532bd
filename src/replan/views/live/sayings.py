"""The texts of specialists in whole lines, so that those of several do not mix."""

from replan.events.types import Event, PhaseEntered, SpecialistToken, StepEvent
from replan.views.cells import one_line


class Sayings:
    """The texts of a run's specialists as they arrive."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, str], str] = {}

    def after(self, event: Event) -> list[str]:
        """The lines that are whole by an event; whatever else a step does ends its last one."""
        if not isinstance(event, StepEvent | PhaseEntered):
            return []
        key = (event.step_id or 0, event.specialist)
        begun = self._begun.pop(key, "")
        lines = [begun] if begun.strip() else []
        # Outside a plan there is one pipeline, and no step.
        whose = f"step {key[0]} {key[1]} | " if key[0] else ""
        if isinstance(event, SpecialistToken):
            *lines, self._begun[key] = (begun + event.text).split("\n")
        return [f"{whose}{one_line(line)}" for line in lines]


def who(event: StepEvent) -> str:
    """The step and the specialist of an event."""
    return f"step {event.step_id} {event.specialist}"
