"""Find steps that are data in a text: JSON, YAML, XML, a table, blocks of keys."""

import html
import json
import re
from typing import NamedTuple, cast

from replan.plan.markdown import words
from replan.replies.forms.json_text import decode, decode_lines
from replan.replies.vocabulary.naming import squeezed
from replan.replies.written_plans.records import LISTS, has_step_fields
from replan.replies.written_plans.step_fields import part_of
from replan.texts.bounds import REPLY_YAML

_LEAST = 2
_JSON_START = re.compile(r"(?:[^\n{\[]{0,80}[:：]\s*+)?\s*+(?=[\[{])")
_YAML_ITEM = re.compile(r"^[ \t]*-[ \t]+(?P<key>[\w \"']{1,40}):(?:[ \t]|$)", re.MULTILINE)
_YAML_LIST = re.compile(r"^(?P<key>[\w \"']{1,40}):[ \t]*(?:\n[ \t]*-|\n[ \t]+\S)", re.MULTILINE)
_YAML_VALUE = re.compile(r"^(?P<head>[ \t]*(?:-[ \t]+)?[\w \"']{1,40}:[ \t]+)(?P<value>\S.*)$")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w:-]{0,40})(?P<fields>(?:\s[^<>]{0,2000})?)/?>"
)
_FIELD = re.compile(r"([\w:-]{1,40})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_STEP_TAGS = frozenset(squeezed(word) for word in words.listed("step")) - {
    "items",
    "steps",
    "tasks",
}
_RULE = re.compile(r"[\s|:+=]*+-[\s|:+=-]*+")
_PAIR = re.compile(
    r"[\s>*+-]*+[*_`]{0,2}(?P<key>[^:：*`|]{1,40}?)[*_`]{0,2}\s*+[:：]\s*+[*_`]{0,2}\s*+(?P<value>.*)"
)
_BARE_LABEL = re.compile(r"\W*(?P<step>\w+)\s*#?(?P<id>\d{1,4})\W*")


class Data(NamedTuple):
    value: object  # a list of records, or an object with one
    is_cut: bool  # whether the text ends within it
    is_certain: bool  # whether it can be nothing but steps of a plan


def steps_in(text: str) -> Data | None:
    """Find the steps that are data in a text; None if there are none."""
    for read in (_read_json, _read_yaml, _read_markup, _read_table, _read_blocks):
        found = read(text)
        if found is not None:
            return found
    return None


def _read_json(text: str) -> Data | None:
    start = _JSON_START.match(text)
    if start is None:
        return None
    found = decode(text, start.end())
    value: object = found.value
    if isinstance(value, dict) and text[found.end :].lstrip(" ,\n").startswith("{"):
        rows = decode_lines(text[start.end() :])
        if rows:
            return Data(rows, is_cut=False, is_certain=has_step_fields(rows))
    is_data = isinstance(value, dict | list)
    return Data(found.value, found.is_cut, has_step_fields(found.value)) if is_data else None


def _read_yaml(text: str) -> Data | None:
    item, listed = _YAML_ITEM.search(text), _YAML_LIST.search(text)
    begins = [
        found.start()
        for found in (item, listed)
        if found and (part_of(_key(found)) or squeezed(_key(found)) in LISTS)
    ]
    if not begins:
        return None
    source = text[min(begins) :]
    value = load_yaml(source) or load_yaml(_quoted(source))
    return Data(value, is_cut=False, is_certain=True) if has_step_fields(value) else None


def _key(found: re.Match[str]) -> str:
    return found["key"].strip("\"' ")


def load_yaml(text: str) -> object:
    """Read YAML with plain values only; None if it is not YAML, has aliases, or is too deep."""
    import yaml  # noqa: PLC0415 - few replies are YAML

    from replan.texts.yaml_events import load_bounded  # noqa: PLC0415 - as above

    try:
        value = load_bounded(text, REPLY_YAML)
        return cast("object", json.loads(json.dumps(value, default=str)))
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, RecursionError):
        return None


def _quoted(text: str) -> str:
    """Quote values that YAML would misread, as models leave them: with `: `, `@` or `#` in them."""
    lines: list[str] = []
    for line in text.split("\n"):
        found = _YAML_VALUE.match(line)
        if (
            found
            and found["value"][0] not in "[{\"'|>"
            and re.search(r": |^[@`*&!%#]| #", found["value"])
        ):
            value = found["value"].replace("'", "''")
            lines.append(f"{found['head']}'{value}'")
        else:
            lines.append(line)
    return "\n".join(lines)


def _read_markup(text: str) -> Data | None:
    """Read `<step id="1"><task>…</task></step>`, with parts as tags, attributes or text."""
    steps: list[dict[str, object]] = []
    current: dict[str, object] | None = None
    part, start = "", 0
    is_cut = False
    for tag in _TAG.finditer(text) if "<" in text else ():
        name = squeezed(tag["name"])
        if current is None:
            if name in _STEP_TAGS and not tag["close"] and (part_of(name) == "task"):
                current = {"_": ""}
                for field in _FIELD.finditer(tag["fields"]):
                    current[field[1]] = html.unescape(field[2] or field[3] or "")
                start = tag.end()
        elif tag["close"] and name in _STEP_TAGS and not part:
            current["_"] = f"{current['_']}{text[start : tag.start()]}"
            steps.append(_record(current))
            current = None
        elif not tag["close"] and not part:
            current["_"] = f"{current['_']}{text[start : tag.start()]}"
            part, start = name, tag.end()
        elif tag["close"] and name == part:
            value = html.unescape(text[start : tag.start()]).strip()
            before = current.get(part)
            current[part] = f"{before}, {value}" if before else value
            part, start = "", tag.end()
        is_cut = current is not None
    return Data(steps, is_cut, has_step_fields(steps)) if steps else None


def _record(fields: dict[str, object]) -> dict[str, object]:
    text = html.unescape(str(fields.pop("_"))).strip()
    if text and not any(part_of(key) == "task" for key in fields):
        fields["task"] = text
    return fields


def _read_table(text: str) -> Data | None:
    """Read a table whose headers name the tasks, and who does them or what they wait for."""
    lines = text.split("\n")
    for at, line in enumerate(lines[1:], 1):
        if "|" not in line or "-" not in line or not _RULE.fullmatch(line):
            continue
        heads = _cells(lines[at - 1])
        parts = {part_of(head) for head in heads}
        if "task" not in parts or len(heads) < _LEAST:
            continue
        rows: list[object] = []
        for row in lines[at + 1 :]:
            if "|" not in row:
                break
            rows.append(dict(zip(heads, _cells(row), strict=False)))
        return Data(rows, is_cut=False, is_certain=bool({"who", "after"} & parts))
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip(" \t*`_") for cell in line.strip().strip("|").split("|")]


def _read_blocks(text: str) -> Data | None:
    """Read blocks of keys, one for each step, without any list."""
    steps: list[dict[str, object]] = []
    current: dict[str, object] = {}
    for line in [*text.split("\n"), ""]:
        found = _PAIR.fullmatch(line)
        part = part_of(found["key"]) if found else None
        label = _BARE_LABEL.fullmatch(line) if not found else None
        if found and part and found["value"]:
            is_number = part == "task" and found["value"].strip().isdigit()
            current.setdefault("id" if is_number else part, found["value"].strip(" *_`"))
        elif label and label["step"].casefold() in words.listed("step"):
            current.setdefault("id", label["id"])
        elif not line.strip() and current.keys() > {"task", "id"}:
            steps.append(current)
            current = {}
        elif not line.strip():
            current = {}
    return Data(steps, is_cut=False, is_certain=True) if len(steps) > 1 else None
