"""Which of two settings is the tighter one: from outside of the process nothing is loosened."""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from replan.plan.model import Value

V = TypeVar("V", bound=Value)

_LOOSEST_FIRST: Final[dict[str, tuple[Any, ...]]] = {
    "round_scope": ("plan", "ready", "step"),
    "on_failure": ("finish", "halt"),
    "on_doubt": ("ask", "fail"),
    "allow_dynamic_update": (True, False),
}
_APPROVED = {
    "never": frozenset[str](),
    "plan": frozenset({"plan"}),
    "revisions": frozenset({"revisions"}),
    "always": frozenset({"plan", "revisions"}),
}
_FREE = ("complexity_threshold",)


def tightened(team: V, asked: V) -> V:
    """Give what is asked for, with the team's value wherever that is the tighter one."""
    return asked.replace(
        **{
            name: _tighter(name, getattr(team, name), getattr(asked, name))
            for name in asked.model_fields_set
        }
    )


def refused(asked: Value, taken: Value) -> Iterator[str]:
    """Say which of the settings that were asked for are looser than the team's."""
    for name in sorted(asked.model_fields_set):
        wanted, kept = getattr(asked, name), getattr(taken, name)
        if isinstance(wanted, Value):
            yield from refused(wanted, kept)
        elif wanted != kept:
            yield f"{name}={wanted!r} is looser than the team's, so {name}={kept!r} holds."


def _tighter(name: str, team: Any, asked: Any) -> Any:
    if isinstance(asked, Value):
        return tightened(team, asked)
    if name in _FREE or asked == team:
        return asked
    if name == "approval":
        both = _APPROVED[team] | _APPROVED[asked]
        return next(word for word, plans in _APPROVED.items() if plans == both)
    if name in _LOOSEST_FIRST:
        return max(team, asked, key=_LOOSEST_FIRST[name].index)
    return min((each for each in (team, asked) if each is not None), default=None)
