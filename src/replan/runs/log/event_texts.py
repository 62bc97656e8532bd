"""The long texts of events: each stored once, and found by a reference in the event."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from replan.events.types import Said
from replan.ports.run_book import KeptText

LONGEST = 1_000
"""Characters of a text that is in its event as it is."""

_PART = 100


class EventTexts:
    """The texts of a run's events that are not stored yet."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._new: dict[str, KeptText] = {}

    def take(self) -> list[KeptText]:
        """Return what is new, to be kept."""
        taken, self._new = list(self._new.values()), {}
        return taken

    def give_back(self, texts: list[KeptText]) -> None:
        """Put back texts that could not be stored."""
        self._new = {each.ref: each for each in texts} | self._new

    def ref(self, text: str, at: datetime) -> str:
        """Store a text, and return its key."""
        ref = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
        if ref not in self._known:
            self._known.add(ref)
            self._new[ref] = KeptText(ref, text, at)
        return ref

    def shortened(self, fields: Mapping[str, JsonValue], at: datetime) -> dict[str, JsonValue]:
        """Return the fields of an event; of a long text its beginning and the key of the whole."""
        # The whole of `result` is under `result_ref`.
        kept = dict(fields)
        for name, value in fields.items():
            if isinstance(value, str) and len(value) > LONGEST:
                kept |= {name: f"{value[:LONGEST]}…", f"{name}_ref": self.ref(value, at)}
        arguments = fields.get("arguments")
        if isinstance(arguments, dict) and len(whole := _json(arguments)) > LONGEST:
            short: JsonValue = {name: _part(value) for name, value in arguments.items()}
            kept |= {"arguments": short, "arguments_ref": self.ref(whole, at)}
        return kept

    def said(self, message: Said, at: datetime) -> JsonValue:
        """Return what is kept of a message in its event: who said it, how long it is, and where."""
        length = len(message.text)
        return {"role": message.role, "length": length, "ref": self.ref(message.text, at)}


def _part(value: JsonValue) -> JsonValue:
    text = value if isinstance(value, str) else _json(value)
    return value if len(text) <= _PART else f"{text[:_PART]}…"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
