"""Whether the phases of an agent can be walked: found when it is built, not at work."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from replan.errors import ConfigurationError
from replan.state.pipeline.threads import COMPLETED, INITIAL


class PhaseHandler(Protocol):
    """What counts here of the handler of a phase."""

    phase: str

    @property
    def following(self) -> tuple[str, ...]: ...


def first_phase(handlers: Mapping[str, PhaseHandler]) -> str:
    """Return the phase in which a thread begins: `initial_phase`, else the first with a handler."""
    return INITIAL if INITIAL in handlers or not handlers else next(iter(handlers))


def check_phases(agent: str, handlers: Mapping[str, PhaseHandler]) -> None:
    """Check the phases of an agent and their handlers."""
    if not handlers:
        fix = "Set them in _initialize_state_handlers or _initialize_interaction_units."
        raise ConfigurationError(f"{agent}.state_handlers", {}, "the agent has no phases", fix)
    for phase, handler in handlers.items():
        place = f"{agent}.state_handlers['{phase}']"
        if phase == COMPLETED:
            fix = "Handle another phase, and let it lead to 'completed'."
            raise ConfigurationError(
                place, handler, "the phase 'completed' cannot have a handler", fix
            )
        if handler.phase != phase:
            name, fix = type(handler).__name__, f"Give it phase='{phase}', or another key."
            problem = f"{name} declares another phase"
            raise ConfigurationError(f"{place}.phase", handler.phase, problem, fix)
        for following in handler.following:
            if following != COMPLETED and following not in handlers:
                known = ", ".join((*handlers, COMPLETED))
                problem, fix = "no handler has this phase", f"Add one, or name one of: {known}."
                raise ConfigurationError(f"{place}.next_phase", following, problem, fix)
    _check_end(agent, handlers)


def _check_end(agent: str, handlers: Mapping[str, PhaseHandler]) -> None:
    for phase in reachable(handlers, first_phase(handlers)):
        seen = [*reachable(handlers, phase)]
        if not any(COMPLETED in handlers[each].following for each in seen):
            cycle = " -> ".join((*seen, seen[0]))
            problem = "these phases lead to each other and never to 'completed'"
            fix = "Let one of them lead to 'completed', by next_phase or other_phases."
            raise ConfigurationError(f"{agent}.state_handlers", cycle, problem, fix)


def reachable(handlers: Mapping[str, PhaseHandler], phase: str) -> Iterator[str]:
    """Yield a phase and all that can follow it, each once."""
    seen, open_ones = dict[str, None](), [phase]
    while open_ones:
        current = open_ones.pop(0)
        if current in seen or current == COMPLETED:
            continue
        seen[current] = None
        open_ones += handlers[current].following
        yield current
