"""Which of two settings is the tighter one: from outside the process nothing is loosened."""

import math
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from replan.base.values import Value
from replan.state.knowledge import SEARCHED, RAGOptions, knowledge_options
from replan.state.limits import Limits, RunSettings
from replan.state.options import BUILT_IN, MemoryOptions, Options, joined

V = TypeVar("V", bound=Value)

_LOOSEST_FIRST: Final[dict[str, tuple[Any, ...]]] = {
    "round_scope": ("plan", "ready", "step"),
    "on_failure": ("finish", "halt"),
    "on_doubt": ("ask", "fail"),
    "allow_dynamic_update": (True, False),
    "keep_prompts": (True, False),
    "mode": ("full", "summary", "window"),
    "summary_enabled": (True, False),
    "rag_mode": ("map_reduce", "stuff", "none"),
    "rag_use_summary": (True, False),
}
_APPROVED = {
    "never": frozenset[str](),
    "plan": frozenset({"plan"}),
    "revisions": frozenset({"revisions"}),
    "always": frozenset({"plan", "revisions"}),
}
_WRITTEN = MemoryOptions(summary_enabled=True)
_FREE = ("complexity_threshold",)
_OWN = ("tenant", "user")

LOOSENED: Final = "Settings of this run were loosened"
"""The beginning of the warnings about it."""

EDITABLE: Final = frozenset({"messages", "plan", "answers", "current_plan", "settings"})
"""The keys of the state that a client may edit, whatever its team opens."""

_KEYS = ("current_specialist_results", "generations", "max_rounds", "questions", "usage")
CAN_BE_OPENED: Final = frozenset({*RunSettings.model_fields, *Limits.model_fields, *_KEYS}) - {
    "limits"
}
"""Settings, limits and keys of the state that a team may open to clients."""


def tightened(team: V, asked: V, opened: Collection[str] = ()) -> V:
    """Return what is asked for, with the team's value wherever that is the tighter one."""
    fields: dict[str, Any] = {}
    for name in asked.model_fields_set:
        kept, wanted = getattr(team, name), getattr(asked, name)
        if name in opened:
            fields[name] = wanted
        elif isinstance(wanted, MemoryOptions):
            fields[name] = _tightened_memory(cast("MemoryOptions", kept), wanted)
        elif isinstance(wanted, RAGOptions):
            fields[name] = _tightened_rag(cast("RAGOptions", kept), wanted)
        elif isinstance(wanted, Value):
            # What bounds a single step has names that bound the run, too.
            fields[name] = tightened(kept, wanted, opened if name == "limits" else ())
        else:
            fields[name] = _tighter(name, kept, wanted)
    return asked.replace(**fields)


def tightened_options(team: Options, asked: Options) -> Options:
    """Return the options that a step asks for, with the team's wherever those are the tighter."""
    if isinstance(asked, MemoryOptions):
        return _tightened_memory(cast("MemoryOptions", team), asked)
    set_options = cast("RAGOptions", asked)
    fields = _tightened_rag(cast("RAGOptions", team), set_options)
    if set_options.mode is None:
        return fields
    mode = knowledge_options(SEARCHED, cast("RAGOptions", team)).mode
    return fields.replace(mode=_tighter("rag_mode", mode, set_options.mode))


def _tightened_memory(team: MemoryOptions, asked: MemoryOptions) -> MemoryOptions:
    kept, set_options = joined(_WRITTEN, BUILT_IN, team), asked.given
    fields = {name: _tighter(name, getattr(kept, name), set_options[name]) for name in set_options}
    if "history_limit" in set_options:
        limits = (cast("int", kept.history_limit), set_options["history_limit"])
        fields["history_limit"] = min(limits, key=lambda most: most if most > 0 else math.inf)
    if "summary_trigger_messages" in set_options:
        rarer = max(
            cast("int", kept.summary_trigger_messages), set_options["summary_trigger_messages"]
        )
        fields["summary_trigger_messages"] = rarer
    if "summary_model_id" in set_options:
        fields["summary_model_id"] = kept.summary_model_id
    return MemoryOptions(**fields)


def _tightened_rag(team: RAGOptions, asked: RAGOptions) -> RAGOptions:
    """Less knowledge, or none, in less time; only the team decides where to search."""
    kept, set_options = knowledge_options(SEARCHED, team), asked.given
    settings_fields = RAGOptions.settings_only & set_options.keys()
    fields: dict[str, Any] = {name: getattr(kept, name) for name in settings_fields}
    for name in set_options.keys() - settings_fields:
        fields[name] = _tighter(f"rag_{name}", getattr(kept, name), set_options[name])
    if set_options.get("mode") != "none":
        # A specialist may have none, and this would count for all of them.
        fields["mode"] = None
    if "min_score" in set_options:
        fields["min_score"] = max(cast("float", kept.min_score), set_options["min_score"])
    return RAGOptions(**fields)


def refused(asked: Value, taken: Value) -> Iterator[str]:
    """Name which of the settings that were asked for are looser than the team's."""
    for name in sorted(asked.model_fields_set):
        wanted, kept = getattr(asked, name), getattr(taken, name)
        if isinstance(wanted, Value):
            yield from refused(wanted, kept)
        elif wanted != kept:
            yield f"{name}={wanted!r} is looser than the team's, so {name}={kept!r} holds."


def loosening_warnings(before: RunSettings, after: RunSettings, by: str, at: datetime) -> list[str]:
    if after == before:
        return []
    looser = ", ".join(_loosened(before, after))
    when = f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return [f"{LOOSENED} by {by}, {when}: {looser}."] if looser else []


def _loosened(before: Value, after: Value, within: str = "") -> Iterator[str]:
    """Name the settings that became looser, each with both values."""
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(new, Options):
            continue
        if isinstance(new, Value):
            yield from _loosened(old, new, "" if name == "limits" else f"{name}.")
        elif _tighter(name, old, new) != new:
            yield f"{within}{name} from {old!r} to {new!r}"


def _tighter(name: str, team: Any, asked: Any) -> Any:
    """Return the tighter one of two values of a setting."""
    if name in _FREE or asked == team:
        return asked
    if name in _OWN:
        return team
    if name == "approval":
        both = _APPROVED[team] | _APPROVED[asked]
        return next(word for word, plans in _APPROVED.items() if plans == both)
    if name in _LOOSEST_FIRST:
        return max(team, asked, key=_LOOSEST_FIRST[name].index)
    return min((each for each in (team, asked) if each is not None), default=None)
