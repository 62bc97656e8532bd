"""Fields that are texts of a form: names, sentences, addresses, variables."""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from replan.base.declared.mistakes import FIX as KEY_FIX
from replan.base.declared.part import did_you_mean, field_error, name_like
from replan.ports.built_in import built_in_models
from replan.state.tightening import CAN_BE_OPENED


def sentence(text: str) -> str:
    if not text.strip():
        raise field_error(
            "empty",
            "This is empty.",
            "Say in a sentence when to choose it; the planner reads this.",
        )
    return text


def open_field(name: str) -> str:
    if name not in CAN_BE_OPENED:
        allowed = sorted(CAN_BE_OPENED)
        fix = did_you_mean(name, allowed, f"Use some of: {', '.join(allowed)}.")
        raise field_error("unknown_setting", "There is no such setting, limit or key.", fix)
    return name


def server(url: str) -> str:
    if not re.match(r"https?://[^\s/]", url):
        fix = "Write it with http:// or https://, as in http://127.0.0.1:8000/v1."
        raise field_error("bad_url", "This is not the address of a server.", fix)
    return url


def variable(name: str) -> str:
    """Refuse what is not a name of a variable: it may be a key."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        reason = "This is not the name of an environment variable in capital letters."
        raise field_error("literal_secret", reason, KEY_FIX)
    return name


NewModel = Annotated[
    str,
    AfterValidator(
        name_like(
            r"[A-Za-z0-9][\w.-]*",
            "This cannot be the name of a model.",
            "Use letters, digits, '_', '-' and '.'; 'offline' is the built-in model.",
            reserved=built_in_models,
        )
    ),
]
"""The name that a file gives to a model."""

Name = Annotated[
    str,
    AfterValidator(
        name_like(
            r"[^\W_][\w-]*",
            "This cannot be the name of a specialist.",
            "Use letters, digits, '_' and '-', beginning with a letter or digit.",
        )
    ),
]
"""A name that a plan document can say as `@name`."""

Sentence = Annotated[str, AfterValidator(sentence)]
"""A text that is not blank."""

OpenField = Annotated[str, AfterValidator(open_field)]
"""What a team may open to clients of a server."""

ServerUrl = Annotated[
    str, AfterValidator(server), WithJsonSchema({"type": "string", "pattern": "^https?://"})
]
"""The address of a server."""

VariableName = Annotated[
    str,
    AfterValidator(variable),
    WithJsonSchema({"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}),
]
"""The name of an environment variable."""
