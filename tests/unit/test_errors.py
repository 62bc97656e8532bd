"""The tree of errors at the top of `errors.py` is that of the classes."""

import inspect
import re

from replan.base import errors


def _tree(text: str) -> dict[str, str]:
    """The errors of the drawn tree, each with the one above it."""
    above, parents = [], {}
    for line in text.splitlines():
        drawn = re.match(r"([│├└─ ]*)(\w+Error)\b", line)
        if drawn is None:
            continue
        depth = len(drawn[1]) // 4
        above = [*above[:depth], drawn[2]]
        parents[drawn[2]] = above[depth - 1] if depth else ""
    return parents


def test_the_tree_has_every_error_below_the_one_that_it_derives_from() -> None:
    drawn = _tree(errors.__doc__.partition("```")[2].partition("```")[0])
    classes = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.ReplanError)
    ]
    public = {kind for kind in classes if not kind.__name__.startswith("_")}
    derived = {
        kind.__name__: next((base.__name__ for base in kind.__mro__[1:] if base in public), "")
        for kind in public
    }
    assert drawn == derived
