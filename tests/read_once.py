"""What LangGraph reads of the nodes of a graph, read once for all graphs of a test run.

For each graph it reads the signatures, annotations and bytecode of the same nodes anew, which takes
as long as a third of a short run. They depend on nothing but the code.
"""

import dis
import inspect
from functools import cache, partial, wraps
from types import FunctionType, SimpleNamespace
from typing import Any

from langgraph._internal import _runnable
from langgraph.graph import _branch, state
from langgraph.pregel import _utils


def read_nodes_once() -> None:
    """Let LangGraph remember what it read; for all of this process."""
    for module in (_branch, state):
        module.get_type_hints = _once(module.get_type_hints)
    _runnable.inspect = SimpleNamespace(**vars(inspect) | {"signature": _once(inspect.signature)})
    instructions = cache(lambda code: [*dis.get_instructions(code)])
    _utils.dis = SimpleNamespace(get_instructions=instructions)


def _once(read: Any) -> Any:
    known: dict[Any, Any] = {}

    @wraps(read)
    def reading(code: Any, **options: Any) -> Any:
        key = _key_of(code)
        if key is None:
            return read(code, **options)
        key = (key, *options.items())
        if key not in known:
            known[key] = read(code, **options)
        return known[key]

    return reading


def _key_of(code: Any) -> Any:
    """What all that is read depends on; None for the code of others, which a test may make."""
    match code:
        case type():
            return code
        case partial():
            inner = _key_of(code.func)
            return None if inner is None else (inner, len(code.args), *code.keywords)
        case FunctionType() if code.__module__.startswith("replan."):
            return code.__code__
    return None
