"""The plan of a run that travels, as JSON: the results in it that are on record are written once.

A step has the beginning of its result, and the document quotes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from replan.state.session.context_fields import Path, ValueReader

ON_RECORD = "on_record"
_CHARACTERS, _END, _STEP, _LEAD = "characters", "end", "step", "lead"
_CUT = "…"
_KEY = 32


def shortened(plan: dict[str, Any], recorded: Mapping[str, JsonValue]) -> JsonValue:
    texts = {key: text for key, result in recorded.items() if (text := _text_of(result))}
    beginnings = {text[:_KEY]: (key, text) for key, text in texts.items()}
    steps: list[dict[str, Any]] = plan.get("steps", [])
    short = [_short_step(step, beginnings) for step in steps]
    content = plan.get("content")
    parts = [*_parts(content, steps)] if isinstance(content, str) else []
    whole = {"content": parts} if len(parts) > 1 else {}
    return cast("JsonValue", {**plan, **({"steps": short} if steps else {}), **whole})


def lengthened(
    plan: Mapping[str, Any], recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    """The plan as it was; mistakes are collected by the reading."""
    steps = plan.get("steps")
    if not isinstance(steps, list):
        return dict(plan)
    whole = [
        _whole_step(step, recorded, (*path, "steps", place), reading)
        for place, step in enumerate(cast("list[Any]", steps))
    ]
    content = plan.get("content")
    if isinstance(content, list):
        parts = enumerate(cast("list[Any]", content))
        where = (*path, "content")
        content = "".join(_text_of_part(each, whole, (*where, at), reading) for at, each in parts)
    return {**plan, "steps": whole, **({"content": content} if "content" in plan else {})}


def _short_step(step: dict[str, Any], beginnings: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    result = str(step.get("result", ""))
    key, text = beginnings.get(result[:_KEY], ("", ""))
    end = "" if text.startswith(result) else _CUT
    if len(result) <= _KEY or not text.startswith(result.removesuffix(end)):
        return step
    length = len(result) - len(end)
    return {**step, "result": {ON_RECORD: key, _CHARACTERS: length, _END: end}}


def _whole_step(
    step: Any, recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    fields = cast("dict[str, Any]", step) if isinstance(step, dict) else {}
    match fields.get("result"):
        case {"on_record": str(key), "characters": int(length), "end": str(end)}:
            text = _text_of(recorded.get(key))
            if not 0 <= length <= len(text) or end not in ("", _CUT):
                _refuse((*path, "result"), key, reading)
            is_whole = reading.has_room(length)
            return {**fields, "result": text[: max(0, length)] + end if is_whole else ""}
        case _:
            return cast("dict[str, Any]", step)


def _parts(content: str, steps: list[dict[str, Any]]) -> Iterator[JsonValue]:
    """A document in parts: its own text, and the results of steps that it quotes."""
    told = 0
    for place, step in enumerate(steps):
        result = str(step.get("result", ""))
        first = (
            content.find(f"> {result.partition(chr(10))[0]}", told) if len(result) > _KEY else -1
        )
        begin = content.rfind("\n", told, first) + 1
        lead = content[begin : first + 2]
        if first < 0 or not begin or not content.startswith(_quoted(result, lead), begin):
            continue
        yield content[told:begin]
        yield {_STEP: place, _LEAD: lead}
        told = begin + len(_quoted(result, lead))
    yield content[told:]


def _text_of_part(part: Any, steps: list[dict[str, Any]], path: Path, reading: ValueReader) -> str:
    match part:
        case str():
            return part
        case {"step": int(place), "lead": str(lead)} if 0 <= place < len(steps):
            text = _result_of(steps[place])
            size = len(text) + (text.count("\n") + 1) * len(lead)
            return _quoted(text, lead) if reading.has_room(size) else ""
        case _:
            _refuse(path, part, reading)
            return ""


def _result_of(step: Any) -> str:
    found = cast("dict[str, Any]", step).get("result") if isinstance(step, dict) else None
    return found if isinstance(found, str) else ""


def _quoted(text: str, lead: str) -> str:
    return "\n".join(f"{lead}{line}" if line else lead.rstrip() for line in text.split("\n"))


def _text_of(result: JsonValue) -> str:
    inner = result.get("result") if isinstance(result, dict) else None
    content = inner.get("content") if isinstance(inner, dict) else None
    return content if isinstance(content, str) else ""


def _refuse(path: Path, found: object, reading: ValueReader) -> None:
    problem, fix = "no result on record is this text", "Send the run as it was."
    reading.refuse(path, found, problem, fix)
