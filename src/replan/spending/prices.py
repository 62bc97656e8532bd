"""Which price a model has: by any of its names, and none that nobody configured."""

from collections.abc import Iterable, Mapping

from replan.ports.built_in import is_built_in
from replan.state.limits import Price

_FREE = Price(input=0, output=0)


def price_of(names: Iterable[str], prices: Mapping[str, Price]) -> Price | None:
    """The price of a model, by the first of its names that has one."""
    names = tuple(names)
    found = next((prices[name] for name in names if name in prices), None)
    return _FREE if found is None and is_built_in(names) else found
