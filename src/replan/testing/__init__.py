"""Strict fakes for tests: a chat model and an OpenAI-compatible server that play a script.

The names load when they are used, so that a pytest plugin of this package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replan.testing.faults import (
        Empty,
        Hang,
        HttpFault,
        Malformed,
        Raised,
        Reset,
        ScriptedHttpError,
        Truncated,
    )
    from replan.testing.replies import Reply, always
    from replan.testing.script import Script, UnconsumedReplies, UnexpectedModelCall
    from replan.testing.scripted import ModelCall, ScriptedModel
    from replan.testing.server import OpenAIServer
    from replan.testing.wire import ChatRequest

__all__ = [
    "ChatRequest",
    "Empty",
    "Hang",
    "HttpFault",
    "Malformed",
    "ModelCall",
    "OpenAIServer",
    "Raised",
    "Reply",
    "Reset",
    "Script",
    "ScriptedHttpError",
    "ScriptedModel",
    "Truncated",
    "UnconsumedReplies",
    "UnexpectedModelCall",
    "always",
]

_HOMES = {
    "faults": (
        "Empty",
        "Hang",
        "HttpFault",
        "Malformed",
        "Raised",
        "Reset",
        "ScriptedHttpError",
        "Truncated",
    ),
    "replies": ("Reply", "always"),
    "script": ("Script", "UnconsumedReplies", "UnexpectedModelCall"),
    "scripted": ("ModelCall", "ScriptedModel"),
    "server": ("OpenAIServer",),
    "wire": ("ChatRequest",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"replan.testing.{module}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
