"""How events are kept in a log and read back; a long text is kept once, and found by a reference.

Reading one needs no framework.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_args

from pydantic import JsonValue, ValidationError

from replan.base.values import json_text, restored, text_or_json
from replan.log.events.types import (
    BaseEvent,
    Event,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
    WarningReported,
)
from replan.log.rows import KeptText, LoggedEvent, reference_to

C = TypeVar("C", bound=BaseEvent)

logger = logging.getLogger(__name__)

LONGEST = 1_000  # characters of a text that is in its event as it is

_PART = 100
_KINDS: Mapping[str, type[BaseEvent]] = MappingProxyType(
    {kind.model_fields["type"].default: kind for kind in get_args(get_args(Event)[0])}
)


def event_of(run_id: str, logged: LoggedEvent) -> Event:
    """Return a kept event; one that this version cannot read is a warning in its place."""
    kept = logged.event if isinstance(logged.event, dict) else {}
    fields: dict[str, Any] = {**kept, "run_id": run_id, "seq": logged.seq}
    kind = _KINDS.get(fields.get("type", ""))
    try:
        if kind is not None:
            return cast("Event", restored(kind, _kept_fields(kind, fields)))
    except ValidationError:
        pass
    name = fields.get("type")
    logger.warning("a kept event cannot be read", extra={"run_id": run_id, "kind": name})
    envelope = {name: fields[name] for name in ("run_id", "seq", "at", "round") if name in fields}
    return WarningReported(
        text=f"This version of Replan cannot read the event {name!r}.", **envelope
    )


def _kept_fields(kind: type[BaseEvent], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event but for content, which is in no log, whatever was written there."""
    live = {name for name, field in kind.model_fields.items() if field.exclude}
    return {name: value for name, value in fields.items() if name not in live}


def events_of(run_id: str, logged: Iterable[LoggedEvent]) -> list[Event]:
    """Return kept events, in their order."""
    return [event_of(run_id, event) for event in logged]


class EventTexts:
    """The texts of a run's events that are not stored yet."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._new: dict[str, KeptText] = {}

    def take(self) -> list[KeptText]:
        taken, self._new = list(self._new.values()), {}
        return taken

    def give_back(self, texts: list[KeptText]) -> None:
        """Put back texts that could not be stored."""
        self._new = {text.ref: text for text in texts} | self._new

    def ref(self, text: str, at: datetime) -> str:
        """Store a text, and return its key."""
        ref = reference_to(text)
        if ref not in self._known:
            self._known.add(ref)
            self._new[ref] = KeptText(ref, text, at)
        return ref

    def shortened(self, fields: Mapping[str, JsonValue], at: datetime) -> dict[str, JsonValue]:
        """Return the fields of an event; of a long text its beginning and the key of the whole."""
        kept, refs = dict(fields), dict[str, JsonValue]()
        for name, value in fields.items():
            if isinstance(value, str) and len(value) > LONGEST:
                kept[name], refs[name] = f"{value[:LONGEST]}…", self.ref(value, at)
        arguments = fields.get("arguments")
        if isinstance(arguments, dict) and len(whole := json_text(arguments)) > LONGEST:
            kept["arguments"] = {name: _part(value) for name, value in arguments.items()}
            refs["arguments"] = self.ref(whole, at)
        return {**kept, "refs": refs} if refs else kept

    def message(self, message: MessageText, at: datetime) -> JsonValue:
        """Return what is kept of a message in its event: who said it, how long it is, and where."""
        return message.model_dump(mode="json") | {"ref": self.ref(message.text, at)}


def _part(value: JsonValue) -> JsonValue:
    text = text_or_json(value)
    return value if len(text) <= _PART else f"{text[:_PART]}…"


def entry_of(event: Event, texts: EventTexts | None = None) -> dict[str, JsonValue]:
    """Return what is kept of an event that has its time; without `texts`, no message is."""
    fields = event.model_dump(mode="json", exclude={"seq", "run_id", "prompt", "reply"})
    if texts is None or event.at is None:
        return fields
    return texts.shortened(fields, event.at) | _messages(event, event.at, texts)


def _messages(event: Event, at: datetime, texts: EventTexts) -> dict[str, JsonValue]:
    prompt, reply = prompt_of(event), reply_of(event)
    kept: dict[str, JsonValue] = {"prompt": [texts.message(message, at) for message in prompt]}
    kept["reply"] = None if reply is None else texts.message(reply, at)
    return {name: value for name, value in kept.items() if value}


def prompt_of(event: Event) -> tuple[MessageText, ...]:
    """What a model was sent."""
    return event.prompt if isinstance(event, ModelInvoked | MemorySummary) else ()


def reply_of(event: Event) -> MessageText | None:
    """What a model replied."""
    return event.reply if isinstance(event, ModelCompleted | MemorySummary) else None


def with_whole_texts(call: C, texts: Mapping[str, str]) -> C:
    """Return the event of a call with its whole arguments and result, where `texts` have them."""
    whole: dict[str, Any] = {name: texts[ref] for name, ref in call.refs.items() if ref in texts}
    if "arguments" in whole:
        whole["arguments"] = json.loads(whole["arguments"])
    return call.replace(**whole) if whole else call


def references(events: Iterable[Event]) -> set[str]:
    """The references in events to their long texts."""
    refs = set[str]()
    for event in events:
        reply = reply_of(event)
        messages = [*prompt_of(event), *([] if reply is None else [reply])]
        refs |= {*event.refs.values(), *(message.ref for message in messages if message.ref)}
    return refs
