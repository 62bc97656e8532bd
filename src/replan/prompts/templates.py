"""Prompt files with named placeholders, whose values are text and never read as a template."""

import re
from functools import cache
from importlib.resources import files

_PLACEHOLDER = re.compile(r"\$(?:\{([a-z_]+)\}|([a-z_]+))")


@cache
def load(name: str) -> str:
    """Read the built-in prompt `[name]_system_prompt.md`."""
    return files("replan.prompts").joinpath(f"{name}_system_prompt.md").read_text("utf-8").strip()


def render(template: str, **values: object) -> str:
    """Put values in place of `$name`, in one pass; any other `$` stays as it is."""

    def value_of(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return str(values[name]) if name in values else found[0]

    return _PLACEHOLDER.sub(value_of, template)
