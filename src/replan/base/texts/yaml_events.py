"""YAML looked at event by event, before anything is built of it.

What builds values recurses without a bound, merges mappings before anybody can count them, and
makes numbers of any length. The events come one after another.
"""

from collections.abc import Iterator
from typing import Any, cast

import yaml
from yaml.resolver import Resolver

from replan.base.texts.bounds import YamlBounds

LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of plain values; in C where PyYAML was built with it."""

_NUMBERS = frozenset(("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"))
_MERGE = "tag:yaml.org,2002:merge"
_FIRST_OF_NUMBERS = frozenset("+-.0123456789")


class YamlBoundError(ValueError):
    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        self.line = line
        self.column = column
        self.problem = problem
        super().__init__(problem)


def load_bounded(text: str, bounds: YamlBounds) -> object:
    """Read a YAML text as plain values.

    Raises:
        YamlBoundError: It is beyond a bound, or merges mappings.
        yaml.YAMLError: It is not YAML.
        ValueError, OverflowError, TypeError: A value in it cannot be made.
    """
    check_bounds(text, bounds)
    return cast("object", yaml.load(text, Loader=LOADER))  # noqa: S506 - the loader is a safe one


def check_bounds(text: str, bounds: YamlBounds) -> None:
    """Refuse a YAML text that is beyond a bound.

    Raises:
        YamlBoundError: It is, or it merges mappings where it may not.
        yaml.YAMLError: It is not YAML.
    """
    if len(text) > bounds.characters:
        raise YamlBoundError(
            f"It has {len(text):,} characters; at most {bounds.characters:,} are read"
        )
    _Count(bounds).check(text)


class _Count:
    """One pass over the events of a text."""

    def __init__(self, bounds: YamlBounds) -> None:
        self._bounds = bounds
        self._values = 0
        self._open: list[tuple[str | None, int]] = []
        """The anchor of each collection that is open, and how many values were before it."""
        self._sizes: dict[str, int] = {}

    def check(self, text: str) -> None:
        events = cast("Iterator[yaml.Event]", cast("Any", yaml).parse(text, Loader=LOADER))
        try:
            for event in events:
                self._refuse(self._problem(event), event.start_mark)
        except yaml.MarkedYAMLError as error:
            # libyaml has its own bound, and reads ahead of the events.
            if "maximum nesting depth" not in str(error.problem):
                raise
            self._refuse(self._too_deep(), error.problem_mark)

    def _refuse(self, problem: str, mark: Any) -> None:
        if problem:
            raise YamlBoundError(problem, *((mark.line, mark.column) if mark else ()))

    def _too_deep(self) -> str:
        return f"It is nested deeper than {self._bounds.depth} levels"

    def _problem(self, event: yaml.Event) -> str:
        """Count an event, and say what is wrong with it; empty if nothing is."""
        anchor = cast("str | None", getattr(event, "anchor", None))
        if anchor and not self._bounds.aliases:
            return "It has an anchor or an alias"
        if isinstance(event, yaml.AliasEvent):
            if anchor not in self._sizes:
                return f"The alias '*{anchor}' is used where its anchor is not known"
            self._values += self._sizes[anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append((anchor, self._values))
            self._values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            self._note(anchor, self._values - before)
        elif isinstance(event, yaml.ScalarEvent):
            self._values += 1
            self._note(anchor, 1)
            return self._scalar_problem(event) or self._excess()
        return self._excess()

    def _note(self, anchor: str | None, size: int) -> None:
        if anchor:
            self._sizes[anchor] = size

    def _excess(self) -> str:
        if len(self._open) > self._bounds.depth:
            return self._too_deep()
        if self._values > self._bounds.values:
            return f"It has more than {self._bounds.values:,} values"
        return ""

    def _scalar_problem(self, event: yaml.ScalarEvent) -> str:
        value, tag = str(event.value), event.tag
        is_plain = tag is None and event.implicit[0]
        if not self._bounds.merges and ((is_plain and value == "<<") or tag == _MERGE):
            return "It merges mappings with '<<'; write their fields out"
        if len(value) <= self._bounds.digits or not (is_plain or tag in _NUMBERS):
            return ""
        if tag in _NUMBERS or (value[0] in _FIRST_OF_NUMBERS and _plain_tag(value) in _NUMBERS):
            return f"A number has {len(value):,} digits; at most {self._bounds.digits} are read"
        return ""


def _plain_tag(value: str) -> str:
    return str(cast("Any", Resolver()).resolve(yaml.ScalarNode, value, (True, False)))
