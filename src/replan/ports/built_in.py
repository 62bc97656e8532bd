"""The models that come with Replan, listed in a data file."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from replan.base.values import Value


class BuiltIn(Value):
    """A model that comes with Replan: it runs in this process and costs nothing."""

    model: str  # its class, as `module:class`
    notice: str  # what it is, in one line


@cache
def built_in_models() -> Mapping[str, BuiltIn]:
    """The built-in models by name."""
    text = files("replan.ports").joinpath("built_in.toml").read_text("utf-8")
    found = tomllib.loads(text)["models"]
    return TypeAdapter(Mapping[str, BuiltIn]).validate_python(found)


def is_built_in(names: Iterable[object]) -> bool:
    """Whether one of a model's names is that of a built-in one."""
    return any(name in built_in_models() for name in names if isinstance(name, str))


def comes_with_replan(reference: str) -> bool:
    """Whether `module:name` leads into a package that comes with Replan."""
    tops = {built_in.model.partition(":")[0] for built_in in built_in_models().values()}
    return reference.partition(":")[0].partition(".")[0] in tops
