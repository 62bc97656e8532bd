"""Replan: plan-driven multi-agent work on LangGraph.

The public names are listed in `__init__.pyi`. Each is loaded when it is first asked for, so that
`from replan.plan import TaskPlan` loads no framework.
"""

from typing import Any

from replan.base.public_names import names_of

_load, _names = names_of(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # It takes longer to import than all else here.
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            return version("replan")
        except PackageNotFoundError:
            return "0+source"
    if name == "MultiAgentConfig":
        from replan.base.declared.part import tell_old_name  # noqa: PLC0415 - few ask for the old name

        tell_old_name("MultiAgentConfig", "Team", stacklevel=2)
        name = "Team"
    return _load(name)


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
