"""Public names of a package: each is loaded when it is first asked for.

The names and their modules are the imports of the package's stub, `__init__.pyi`. So an import of
the package loads no framework, and type checkers and readers see what it has.
"""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGES = (
    "replan",
    "replan.jobs",
    "replan.knowledge",
    "replan.memory",
    "replan.pipelines",
    "replan.sessions",
    "replan.state",
)
"""The packages whose names are promised, beside `replan.plan`, `replan.testing`, and every error
and event of `replan.errors` and `replan.events`."""


def names_of(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package with a stub beside its `__init__.py`.

    Args:
        package: The name of the package.
        file: The path of its `__init__.py`.
    """

    def value_of(name: str) -> Any:
        if name == "__all__":
            # What needs an extra that is not installed would keep all others from `import *`; who
            # names it is told what to install.
            return [each for each in names() if loads(each)]
        # Python asks for names such as `__path__` by itself.
        if name.startswith("__") or name not in _modules(file):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(_modules(file)[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def loads(name: str) -> bool:
        try:
            value_of(name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("replan"):
                raise
            return False
        return True

    def names() -> list[str]:
        return sorted(_modules(file))

    return value_of, names


@cache
def _modules(file: str) -> dict[str, str]:
    """The module of each public name, from the imports of the stub."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    return {name.name: str(imported.module) for imported in imports for name in imported.names}
