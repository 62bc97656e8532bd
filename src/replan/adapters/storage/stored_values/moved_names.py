"""Where the classes are now that older checkpoints name by another module or name.

A checkpoint names the class of each value. Who moves or renames a class of the state enters it into
`MOVED`; what is stored then reads as if the class had always stood where it is. The table leads to
our own classes only, and what it leads to is still checked against the list of the serializer.
"""

from collections.abc import Mapping
from typing import Any, cast

import ormsgpack

Name = tuple[str, str]  # a module, and the name of a class in it

MOVED: dict[Name, Name] = {}  # the place of a class now, by one that it had


def renamed(packed: bytes, moved: Mapping[Name, Name]) -> bytes:
    """Return stored data with the names of today; data without older names as they are."""
    if not any(module.encode() in packed for module, _ in moved):
        return packed

    def current(code: int, inner: bytes) -> ormsgpack.Ext:
        parts = _unpacked(inner)
        if isinstance(parts, list):
            _rename(cast("list[Any]", parts), moved)
        return ormsgpack.Ext(code, _packed(parts))

    def _unpacked(inner: bytes) -> Any:
        return ormsgpack.unpackb(inner, ext_hook=current, option=ormsgpack.OPT_NON_STR_KEYS)

    return _packed(_unpacked(packed))


def _rename(parts: list[Any], moved: Mapping[Name, Name]) -> None:
    """Change a class's name at the start of what its value is made of."""
    match parts:
        case [str(module), str(name), *_]:
            parts[:2] = moved.get((module, name), (module, name))
        case _:
            pass


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)
