"""Replan: plan-driven multi-agent work on LangGraph.

The public names are listed in `__init__.pyi`. Each is loaded when it is first asked for, so that
`from replan.plan import TaskPlan` loads no framework.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _modules() -> dict[str, str]:
    """The module of each public name, from the imports of the stub."""
    stub = ast.parse(Path(__file__).with_name("__init__.pyi").read_text(encoding="utf-8"))
    imports = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    return {name.name: str(each.module) for each in imports for name in each.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_modules())
    if name == "__version__":
        # It takes longer to import than all else here.
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            return version("replan")
        except PackageNotFoundError:
            return "0+source"
    if name == "MultiAgentConfig":
        from replan.declared.part import tell_old_name  # noqa: PLC0415 - few ask for the old name

        tell_old_name("MultiAgentConfig", "Team", stacklevel=2)
        name = "Team"
    # Python asks for names such as `__path__` by itself.
    if name.startswith("__") or name not in _modules():
        raise AttributeError(f"module 'replan' has no attribute {name!r}")
    value = getattr(import_module(_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*sorted(_modules()), "__version__"]
