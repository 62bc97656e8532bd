"""All compiled patterns of a package, and texts that would make a careless one slow.

A pattern is slow on a text that repeats what one of its repetitions takes, between a beginning that
leads there and an end that lets it fail. The texts are made from the pattern itself.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import re._constants as code  # the only description of a pattern that Python gives
import re._parser as parser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

METHODS = ("match", "fullmatch", "search", "sub", "findall", "finditer", "split")
_CHARACTERS = " a\n-.'*#0@([:_`\"<>|,=x/~+&;\té一\u200b"
_ENDS = ("\x00", " x", "")
_MOST_CHARACTERS = 8
_LONG = 50
_ONE = (code.LITERAL, code.NOT_LITERAL, code.ANY, code.IN)
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)


@dataclass(frozen=True)
class Found:
    """A pattern, where it stands, and how it is used there."""

    where: str
    pattern: re.Pattern[str]
    methods: tuple[str, ...]


def patterns_of(package: ModuleType, *, without: str) -> list[Found]:
    """Give the patterns in all modules of a package, each once."""
    found: dict[tuple[str, int], Found] = {}
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not (info.name.startswith(without) or info.name.endswith("__main__")):
            for each in _patterns_in(importlib.import_module(info.name)):
                key = (each.pattern.pattern, each.pattern.flags)
                methods = dict.fromkeys(
                    (*each.methods, *(found[key].methods if key in found else ()))
                )
                found[key] = Found(each.where, each.pattern, tuple(methods))
    return list(found.values())


def pumped(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Give texts of about a length that a pattern may be slow on."""
    seen: set[tuple[str, str]] = set()
    for whole, pumps in _spots(parser.parse(pattern.pattern, pattern.flags)):
        lead = whole[-_LONG:]
        for pump in filter(None, pumps):
            # The last one begins again and again, as a search does.
            for start, again in ((lead, pump), ("", pump), ("", lead + pump)):
                if (start, again) not in seen:
                    seen.add((start, again))
                    yield from (start + again * (length // len(again)) + end for end in _ENDS)


def _patterns_in(module: ModuleType) -> Iterator[Found]:
    source = ast.parse(Path(inspect.getsourcefile(module) or "").read_text("utf-8"))
    calls = list(_calls(source))
    names = {name for name, value in vars(module).items() if isinstance(value, re.Pattern)}
    others = tuple(dict.fromkeys(method for name, method, _ in calls if name not in names | {"re"}))
    for name, value in vars(module).items():
        for where, pattern in _held(value, name):
            own = tuple(dict.fromkeys(method for called, method, _ in calls if called == name))
            if own or where != name or not _is_imported(module, name, source):
                yield Found(f"{module.__name__}.{where}", pattern, own or others or METHODS[:3])
    for name, method, written in calls:
        if name == "re" and written is not None:
            yield Found(f"{module.__name__}: re.{method}", re.compile(written), (method,))


def _is_imported(module: ModuleType, name: str, source: ast.Module) -> bool:
    imports = (node for node in ast.walk(source) if isinstance(node, ast.ImportFrom))
    return any((alias.asname or alias.name) == name for node in imports for alias in node.names)


def _held(value: object, where: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield where, value
    elif isinstance(value, tuple | list | set | frozenset):
        for at, each in enumerate(value):
            yield from _held(each, f"{where}[{at}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _held(each, f"{where}[{key!r}]")
    elif hasattr(value, "cache_info") and not inspect.signature(value).parameters:
        made = value() if "Pattern" in str(inspect.signature(value).return_annotation) else None
        yield from _held(made, f"{where}()")


def _calls(source: ast.Module) -> Iterator[tuple[str, str, str | None]]:
    """Give the name, the method and the written pattern of what may be a use of a pattern."""
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            value = node.value
            name = value.id if isinstance(value, ast.Name) else ""
            name = (
                value.func.id
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
                else name
            )
            yield name, node.attr, None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_re and node.func.attr in METHODS and isinstance(first, ast.Constant):
                yield "re", node.func.attr, str(first.value)


def _spots(tree: Iterable[Any], lead: str = "") -> Iterator[tuple[str, list[str]]]:
    """Give what leads to each repetition, and what it can repeat."""
    for op, value in tree:
        if op in _REPEATS and (value[1] is code.MAXREPEAT or value[1] > _LONG):
            yield lead, _pumps(value[2])
        for inner in _inside(op, value):
            yield from _spots(inner, lead)
        lead += _example([(op, value)])


def _inside(op: Any, value: Any) -> list[Any]:
    """Give the patterns that a part of a pattern holds."""
    if op in _REPEATS:
        return [value[2]]
    if op is code.BRANCH:
        return list(value[1])
    if op is code.SUBPATTERN:
        return [value[3]]
    if op in (code.ASSERT, code.ASSERT_NOT):
        return [value[1]]
    return [value] if op is code.ATOMIC_GROUP else []


def _pumps(inner: Any) -> list[str]:
    if len(inner) == 1 and inner[0][0] in _ONE:
        return _taken(*inner[0])[:_MOST_CHARACTERS]
    return list(dict.fromkeys((_example(inner), *_choices(inner))))


def _choices(tree: Iterable[Any]) -> Iterator[str]:
    for op, value in tree:
        if op is code.BRANCH:
            yield from map(_example, value[1][:_MOST_CHARACTERS])
        elif op is code.SUBPATTERN:
            yield from _choices(value[3])
        elif op in _REPEATS:
            yield from _choices(value[2])


def _example(tree: Iterable[Any]) -> str:
    """Give a short text that a part of a pattern takes."""
    text = ""
    for op, value in tree:
        if op in _ONE:
            text += "".join(_taken(op, value)[:1])
        elif op is code.BRANCH:
            text += _example(value[1][0])
        elif op is code.SUBPATTERN:
            text += _example(value[3])
        elif op in _REPEATS:
            text += _example(value[2]) * min(value[0], _LONG)
        elif op is code.ATOMIC_GROUP:
            text += _example(value)
    return text


def _taken(op: Any, value: Any) -> list[str]:
    """Give characters that a pattern for one character takes."""
    if op is code.LITERAL:
        return [chr(value)]
    if op is code.ANY:
        return list(_CHARACTERS.replace("\n", ""))
    if op is code.NOT_LITERAL:
        return [each for each in _CHARACTERS if ord(each) != value]
    taken = [each for each in _CHARACTERS if _is_in(each, value)]
    firsts = [
        chr(each if kind is code.LITERAL else each[0])
        for kind, each in value
        if kind in (code.LITERAL, code.RANGE)
    ]
    return taken or firsts


def _is_in(character: str, members: Iterable[Any]) -> bool:
    negated = is_in = False
    for kind, value in members:
        if kind is code.NEGATE:
            negated = True
        elif kind is code.LITERAL:
            is_in |= ord(character) == value
        elif kind is code.RANGE:
            is_in |= value[0] <= ord(character) <= value[1]
        else:
            is_in |= re.match(_CATEGORIES[value], character) is not None
    return is_in != negated


_CATEGORIES = {
    code.CATEGORY_DIGIT: r"\d",
    code.CATEGORY_NOT_DIGIT: r"\D",
    code.CATEGORY_SPACE: r"\s",
    code.CATEGORY_NOT_SPACE: r"\S",
    code.CATEGORY_WORD: r"\w",
    code.CATEGORY_NOT_WORD: r"\W",
}
