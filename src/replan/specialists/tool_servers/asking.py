"""What a tool server asks a person in the midst of a call, asked as a step asks."""

import json
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, cast

from jsonschema import Draft202012Validator, SchemaError
from mcp_types import (
    INVALID_PARAMS,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)
from pydantic import JsonValue

from replan.base.errors import QuestionError
from replan.ports.ask_user import Waiting, ask_user
from replan.prompts.sections import within_budget

_MOST_ATTEMPTS = 3
_LONGEST = 4_000
_LONGEST_FORM = 10_000
_KEPT = (
    *("type", "enum", "const", "required", "title", "description"),
    *("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"),
)
_NO = frozenset({"no", "n", "decline", "reject", "false"})
_YES = frozenset({"yes", "y", "ok", "done", "accept", "approve", "true"})


@dataclass
class Call:
    """A call that is under way, in the context of the step that makes it."""

    context: Any = field(default_factory=copy_context)
    waiting: Waiting | None = None  # the question that the step waits with

    def answer(self, server: str, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Return the answer to the server; without one, end the call, which is made again later."""
        try:
            return self.context.run(_answered, server, params)
        except Waiting as waiting:
            self.waiting = self.waiting or waiting
            return ElicitResult(action="cancel")
        except QuestionError:
            # No person can be asked, or it asks too much.
            return ElicitResult(action="decline")
        except SchemaError as error:
            problem = f"the schema of what is asked is not valid: {error.message}"
            return ErrorData(code=INVALID_PARAMS, message=within_budget(problem, _LONGEST))


def _answered(server: str, params: ElicitRequestParams) -> ElicitResult:
    message = within_budget(params.message, _LONGEST)
    if not isinstance(params, ElicitRequestFormParams):
        text = f"Open {params.url}\nAnswer 'done' when that is done, or 'no'."
        answer = ask_user(f"The tool server {server} asks: {message}\n{text}")
        return ElicitResult(action="accept" if _word(answer) in _YES else "decline")
    size = len(json.dumps(params.requested_schema))
    if size > _LONGEST_FORM:
        raise SchemaError(f"it has {size:,} characters; at most {_LONGEST_FORM:,} are read")
    Draft202012Validator.check_schema(params.requested_schema)
    schema = _checked_part(params.requested_schema)
    how = within_budget(_how_to_answer(schema), _LONGEST)
    question = f"The tool server {server} asks: {message}\n{how}"
    problem = ""
    for _ in range(_MOST_ATTEMPTS):
        answer = ask_user(question + problem)
        if _word(answer) in _NO and not _takes_no(schema):
            return ElicitResult(action="decline")
        content = _content(answer, schema)
        wrong = next(cast("Any", Draft202012Validator(schema)).iter_errors(content), None)
        if wrong is None:
            return ElicitResult(action="accept", content=content)
        # In other words, since it is another question.
        problem += f"\nThis did not fit: {json.dumps(answer)[:200]} ({wrong.message[:200]})."
    return ElicitResult(action="decline")


def _checked_part(schema: Any) -> Any:
    """What of a schema is checked here: the server checks all; a pattern of it may take forever."""
    if not isinstance(schema, dict):
        return {}
    fields = cast("dict[str, Any]", schema)
    kept = {key: fields[key] for key in _KEPT if key in fields}
    if "items" in fields:
        kept["items"] = _checked_part(fields["items"])
    for key in ("anyOf", "oneOf"):
        if key in fields:
            kept[key] = [_checked_part(option) for option in fields[key]]
    if "properties" in fields:
        kept["properties"] = {
            name: _checked_part(property_schema)
            for name, property_schema in fields["properties"].items()
        }
    return kept


def _how_to_answer(schema: dict[str, Any]) -> str:
    fields = _fields(schema)
    if not fields:
        return "Answer yes or no."
    fields_shown = [_field(name, value) for name, value in fields.items()]
    if len(fields_shown) == 1:
        return f"Answer with {fields_shown[0]}; or no."
    return f"Answer with a JSON object of {', '.join(fields_shown)}; or no."


def _field(name: str, schema: Any) -> str:
    kind, choices = schema.get("type", "text"), schema.get("enum")
    kind = f"one of {', '.join(map(str, choices))}" if choices else kind
    about = schema.get("description") or schema.get("title")
    return f"{name} ({kind}{f', {about}' if about else ''})"


def _content(answer: JsonValue, schema: dict[str, Any]) -> Any:
    """Read an answer: the one field that there is, or a JSON object."""
    fields = _fields(schema)
    read: Any = _json(answer) if isinstance(answer, str) else answer
    if isinstance(read, dict) or len(fields) > 1:
        return cast("Any", read)
    if not fields:
        return {}
    (name, field_schema), *_ = fields.items()
    kind, word = field_schema.get("type"), _word(answer)
    if kind == "boolean" and word in _YES | _NO:
        return {name: word in _YES}
    return {name: answer if kind == "string" or read is None else read}


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", schema.get("properties", {}))


def _takes_no(schema: dict[str, Any]) -> bool:
    """Whether no is one of the values that are asked for."""
    fields = _fields(schema)
    return len(fields) == 1 and all(
        field_value.get("type") == "boolean" for field_value in fields.values()
    )


def _word(answer: JsonValue) -> str:
    return str(answer).strip().rstrip(".!").lower()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
