"""Tool calls that a model wrote as text, since its server did not parse them."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, cast

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall, tool_call

from replan.prompts.replies.wrapping import behind_thoughts, unwrapped

UNPARSED = (
    "the server did not parse the model's tool call. Set the tool parser of the server that is "
    "for this model, or its chat template"
)

# Each takes time in proportion to the text: names have a bound, and blanks are stripped later.
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]{1,200})>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]{1,200})>")
_LISTED = re.compile(r"\[TOOL_CALLS\]\s*(.*)\Z", re.DOTALL)
_NAMED = re.compile(r"([\w.-]+)\s*(?:\[CALL_ID\]\s*\S+\s*)?\[ARGS\]\s*(\{.*\})\Z", re.DOTALL)
_PYTHON = re.compile(r"<\|python_tag\|>\s*(.*)\Z", re.DOTALL)
_FENCES = ("```", "```json", "```tool_call")
_MARK = re.compile(
    r"^[ \t]*(?:<tool_call>|<function=[^>\s]{1,200}>|\[TOOL_CALLS\]|<\|python_tag\|>)", re.MULTILINE
)
_SPECIAL = re.compile(r"<[|｜]tool[▁_]calls?[▁_]begin[|｜]>|<\|channel\|>commentary\b")
"""Special tokens of DeepSeek's and of OpenAI's open models around a call of a tool."""

_KEYS = {"name", "arguments", "parameters", "type", "id"}


def with_written_calls(message: AIMessage, tools: Collection[str]) -> AIMessage:
    """Return a reply whose text is tool calls with these calls, and without the text.

    Args:
        message: The reply.
        tools: The names of the tools that the model was offered.

    Raises:
        ValueError: The text has the marks of a tool call, and is no call of an offered tool.
    """
    if message.tool_calls or message.invalid_tool_calls or not tools:
        return message
    if _SPECIAL.search(message.text):
        raise ValueError(UNPARSED)
    text = behind_thoughts(unwrapped(message.text)).strip()
    mark = _MARK.search(text)
    written = [*_calls(text[mark.start() :].strip() if mark else text, is_marked=bool(mark))]
    offered = [(name, args) for name, args in written if name in tools]
    if mark and (not written or len(offered) < len(written)):
        raise ValueError(UNPARSED)
    if not offered or len(offered) < len(written):
        return message
    calls: list[ToolCall] = [tool_call(name=name, args=args, id=None) for name, args in offered]
    prose = text[: mark.start()].strip() if mark else ""
    return message.model_copy(update={"content": prose, "tool_calls": calls})


def _calls(text: str, *, is_marked: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls of a text, each as the name of the tool and its arguments."""
    if not is_marked:
        first, _, rest = text.partition("\n")
        is_fenced = first.strip() in _FENCES and rest.endswith("```")
        yield from _of_json(rest.removesuffix("```") if is_fenced else text)
        return
    if text.startswith("<function="):
        yield from _of_functions(text)
    elif listed := _LISTED.match(text) or _PYTHON.match(text):
        named = _NAMED.match(listed[1].strip())
        if named:
            yield from _of_json(f'{{"name": {json.dumps(named[1])}, "arguments": {named[2]}}}')
        else:
            yield from _of_json(listed[1])
    for tagged in _TAGGED.finditer(text) if text.startswith("<tool_call>") else ():
        body = tagged[1].strip()
        if "<function=" in body:
            yield from _of_functions(body)
        elif "<arg_key>" in body:
            name = body.partition("<arg_key>")[0].strip()
            yield name, dict(_pairs(body))
        else:
            yield from _of_json(body)


def _of_functions(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for match in _FUNCTION.finditer(text):
        name, body = match[1], match[2].strip()
        if body.startswith("{"):
            yield from _of_json(f'{{"name": {json.dumps(name)}, "arguments": {body}}}')
        else:
            _, *parts = _PARAMETER.split(body)
            closed = (
                (key, *part.partition("</parameter>"))
                for key, part in zip(parts[::2], parts[1::2], strict=True)
            )
            yield name, {key: _argument(value) for key, value, end, _ in closed if end}


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a call that marks each name and each value."""
    for part in text.split("<arg_key>")[1:]:
        key, _, rest = part.partition("</arg_key>")
        value, end, _ = rest.strip().removeprefix("<arg_value>").partition("</arg_value>")
        if end:
            yield key.strip(), _argument(value)


def _of_json(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        value: Any = json.loads(text.strip(), strict=False)
    except ValueError:
        return
    entries = cast("list[Any]", value if isinstance(value, list) else [value])
    calls = [_call(entry) for entry in entries]
    for call in calls if all(calls) else ():
        if call:
            yield call


def _call(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Read a call: an object with the name of a tool, its arguments, and nothing else."""
    if not isinstance(value, dict):
        return None
    entry = cast("dict[str, Any]", value)
    if entry.get("type") == "function" and isinstance(entry.get("function"), dict):
        entry = entry["function"]
    args = entry.get("arguments", entry.get("parameters"))
    if isinstance(args, str):
        try:
            args = json.loads(args, strict=False)
        except ValueError:
            return None
    if not (
        isinstance(entry.get("name"), str) and isinstance(args, dict) and entry.keys() <= _KEYS
    ):
        return None
    return entry["name"], cast("dict[str, Any]", args)


def _argument(text: str) -> Any:
    """Read an argument that is written as text: as JSON if it is JSON, else as the text itself."""
    try:
        return json.loads(text.strip(), strict=False)
    except ValueError:
        return text.strip()
