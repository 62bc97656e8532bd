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
        Raw,
        Reset,
        ScriptedHttpError,
        Truncated,
    )
    from replan.testing.pipelines import check_pipeline
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
    "Raw",
    "Reply",
    "Reset",
    "Script",
    "ScriptedHttpError",
    "ScriptedModel",
    "Truncated",
    "UnconsumedReplies",
    "UnexpectedModelCall",
    "always",
    "check_pipeline",
]

# Each needs those before it, so that a name loads no more than its own.
_HOMES = ("pipelines", "faults", "replies", "script", "scripted", "wire", "server")


def __getattr__(name: str) -> Any:
    for home in _HOMES if name in __all__ else ():
        module = importlib.import_module(f"replan.testing.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
