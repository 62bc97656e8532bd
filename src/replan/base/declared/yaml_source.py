"""Files that declare parts: YAML as plain values and places; nothing in it can run or hide."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import SafeConstructor

from replan.base.declared.mistakes import FIX, keys_in, mistake_at, mistakes_in
from replan.base.declared.part import Part, Surroundings, Where, field_path
from replan.base.errors import DeclaredFileError, Mistake, mistake
from replan.base.secrets.masking import without_secrets
from replan.base.texts.bounds import TEAM
from replan.base.texts.yaml_events import LOADER, YamlBoundError, check_bounds

# PyYAML leaves parts of its loaders open, so their methods read as partly unknown.
# pyright: reportUnknownMemberType=false


_STANDARD = "tag:yaml.org,2002:"
_MERGE, _NULL = f"{_STANDARD}merge", f"{_STANDARD}null"
_CONVERTED = frozenset(f"{_STANDARD}{kind}" for kind in ("bool", "int", "float"))
_TEXTS = frozenset(f"{_STANDARD}{kind}" for kind in ("str", "timestamp", "merge", "value"))
_LONGEST_NUMBER = 100
_FIXES = (
    (
        "mapping values are not allowed",
        "Fix the indentation, or put text with ': ' in it in quotes.",
    ),
    ("'\\t'", "Indent with spaces."),
    ("a tab character", "Indent with spaces."),
    ("cannot start any token", "Put text that begins with a special character in quotes."),
    ("The alias", "Put text that begins with '*' in quotes, or define the anchor above."),
    ("another document", "Keep one document in a file, without a second '---'."),
    ("nested", "Write it flat, as the examples do."),
    ("more than", "Repeat less with aliases; far fewer are needed."),
)
_USUAL_FIX = "Check the indentation and the quotes here and in the line above."


class Position(NamedTuple):
    """A line and a column, counted from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, kw_only=True)
class YamlSource:
    """A YAML text as values."""

    value: Any = None  # mappings with text as keys, lists, text, numbers, truth values
    # Where the name of a field is.
    keys: dict[Where, Position] = field(default_factory=dict[Where, Position])
    # Where the value of a field is.
    values: dict[Where, Position] = field(default_factory=dict[Where, Position])
    mistakes: tuple[Mistake, ...] = ()  # what is wrong with the YAML itself

    def position_of(self, where: Where, *, name: bool = False) -> Position:
        """Find a value, or the name of its field; what is not there is where it belongs."""
        for end in range(len(where), -1, -1):
            names_it = name or end < len(where)
            mark = self.keys.get(where[:end]) if names_it else None
            mark = mark or self.values.get(where[:end])
            if mark is not None:
                return mark
        return Position()

    def at(self, where: Where) -> Any:
        value = self.value
        for part in where:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def renamed(self, where: Where, name: str) -> "YamlSource":
        """Give a field another name; it stays in its place."""
        *section, old = where
        fields = self.at(tuple(section))
        fields[name] = fields.pop(old)

        def moved(positions: dict[Where, Position]) -> dict[Where, Position]:
            end = len(where)
            return {
                (*section, name, *at[end:]) if at[:end] == where else at: position
                for at, position in positions.items()
            }

        return replace(self, keys=moved(self.keys), values=moved(self.values))


def read_yaml(text: str) -> YamlSource:
    """Read a text; mistakes of syntax leave no value, other mistakes leave their field out."""
    reading = _Reading()
    try:
        check_bounds(text, TEAM)
        node = cast("yaml.Node | None", yaml.compose(text, Loader=LOADER))
        value = None if node is None else reading.value(node, ())
    except YamlBoundError as excess:
        position = Position(excess.line + 1, excess.column + 1)
        return YamlSource(mistakes=(_broken(excess.problem, position),))
    except yaml.YAMLError as error:
        return YamlSource(mistakes=(_syntax_mistake(error, text),))
    return YamlSource(
        value=value,
        keys=reading.keys,
        values=reading.values,
        mistakes=tuple(reading.mistakes),
    )


class _Reading:
    """One pass over the nodes of a text; an alias is read again wherever it is used."""

    def __init__(self) -> None:
        self.keys: dict[Where, Position] = {}
        self.values: dict[Where, Position] = {}
        self.mistakes: list[Mistake] = []

    def value(self, node: yaml.Node, where: Where) -> Any:
        # What aliases name is counted, but how deep it comes to be is seen only here.
        if len(where) > TEAM.depth:
            raise _refusal("this is nested too deep", node.start_mark)
        self.values[where] = _position_of(node)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_STANDARD}map":
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_STANDARD}seq":
            return [self.value(item, (*where, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, where)
        return self._tagged(node, where)

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        self._check_keys(node, where)
        mapping: dict[str, Any] = {}
        for key, value in self._pairs(node):
            # Of a field that is given twice, the first one counts: its mistakes point there.
            inner = (*where, key.value)
            if key.value not in mapping:
                self.keys[inner] = _position_of(key)
                mapping[key.value] = self.value(value, inner)
        # A field without a value is as if it were not there.
        return {name: value for name, value in mapping.items() if value is not None}

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """Its own fields first, then those of what it merges in with `<<`."""
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif isinstance(key, yaml.ScalarNode):
                yield key, value
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                raise _refusal("'<<' can only merge mappings", other.start_mark)
            yield from self._pairs(other)

    def _check_keys(self, node: yaml.MappingNode, where: Where) -> None:
        seen: dict[str, Position] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._report(key, where, "bad_key", "The name of a field must be text.", "Name it.")
            elif key.value in seen:
                reason = f"This field is already in line {seen[key.value].line}."
                fix = "Keep one of the two."
                self._report(key, (*where, key.value), "duplicate_field", reason, fix)
            else:
                seen[key.value] = _position_of(key)

    def _scalar(self, node: yaml.ScalarNode, where: Where) -> Any:
        if node.tag == _NULL:
            return None
        if node.tag in _TEXTS or (node.tag in _CONVERTED and len(node.value) > _LONGEST_NUMBER):
            return node.value
        if node.tag not in _CONVERTED:
            return self._tagged(node, where)
        try:
            value = cast("Any", SafeConstructor()).construct_object(node)
        except (ValueError, KeyError):
            kind = node.tag.removeprefix(_STANDARD)
            reason = f"This cannot be read as {kind}."
            self._report(node, where, "bad_value", reason, "Write the value without a tag.")
            return None
        return value

    def _tagged(self, node: yaml.Node, where: Where) -> None:
        reason = f"This file cannot have the tag '{without_secrets(node.tag)[:60]}'."
        self._report(node, where, "unknown_tag", reason, "Write the value without a tag.")

    def _report(self, node: yaml.Node, where: Where, code: str, reason: str, fix: str) -> None:
        self.mistakes.append(
            mistake(field_path(where), None, reason, fix, code, *_position_of(node))
        )


def _position_of(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _broken(problem: str, position: Position, reason: str = "") -> Mistake:
    fix = next((fix for sign, fix in _FIXES if sign in problem), _USUAL_FIX)
    return mistake("", None, reason or problem, fix, "yaml", *position)


def _syntax_mistake(error: yaml.YAMLError, text: str) -> Mistake:
    problem, position = str(error), Position()
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or problem
        position = Position(mark.line + 1, mark.column + 1) if mark else position
        if mark and "character that cannot" in problem:
            # What is written in C does not say which one.
            problem += f": {text[mark.index : mark.index + 1]!r}"
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        problem = "here is a character that YAML does not allow"
    return _broken(problem, position, f"This is not YAML: {problem}.")


P = TypeVar("P", bound=Part)


def each_once_by_place(mistakes: Iterable[Mistake]) -> Sequence[Mistake]:
    """Order mistakes as their document is, the first one of each field."""
    first: dict[object, Mistake] = {}
    for each in mistakes:
        first.setdefault(each.field or (each.line, each.column), each)
    return sorted(first.values(), key=lambda mistake: (mistake.line, mistake.column))


def read_part(
    source: YamlSource,
    kind: type[P],
    around: Surroundings,
    refused: Callable[[Sequence[Mistake]], DeclaredFileError],
) -> P:
    """Make what a file declares.

    Raises:
        DeclaredFileError: It has mistakes, or a key stands in it; the error tells all of them.
    """
    mistakes = [
        *source.mistakes,
        *(
            mistake_at(where, source.at(where), "This looks like a key.", FIX, _SECRET, source)
            for where in keys_in(source.value)
        ),
    ]
    part = None
    try:
        part = kind.model_validate(source.value, strict=True, context=around)
    except ValidationError as error:
        mistakes += mistakes_in(error, kind, source=source)
    if part is None or mistakes:
        raise refused(each_once_by_place(mistakes))
    return part


_SECRET = "literal_secret"  # noqa: S105 - a kind of mistake


LARGEST = 200_000


def read_text(path: Path, error: type[DeclaredFileError], fix_of_none: str) -> str:
    """Read a file as text.

    Args:
        path: The file.
        error: How mistakes are reported.
        fix_of_none: What to do if there is no such file.

    Raises:
        DeclaredFileError: It is not there, too large, or no UTF-8.
    """

    def refuse(code: str, reason: str, fix: str, line: int = 1) -> NoReturn:
        raise error(path, [mistake("", None, reason, fix, code, line, 1)]) from None

    try:
        if not path.is_file():
            refuse("unreadable", "There is no such file.", fix_of_none)
        content = path.read_bytes() if path.stat().st_size <= LARGEST else None
    except OSError as problem:
        reason = f"The file cannot be read: {problem.strerror}."
        refuse("unreadable", reason, "Check its name and its permissions.")
    if content is None:
        fix = "Keep long prompts in separate files."
        refuse("too_large", f"The file is larger than {LARGEST:,} bytes.", fix)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        refuse("not_utf8", "The file is not UTF-8.", "Save it as UTF-8.", line)


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NONE = {"type": "null"}


def file_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that files of a kind keep."""
    schema = kind.model_json_schema()
    for definition in (schema, *schema["$defs"].values()):
        for each in definition.get("properties", {}).values():
            _without_none(each)
    return {"$schema": _DIALECT, **schema}


def _without_none(field: dict[str, Any]) -> None:
    if field.get("default", ...) is None:
        del field["default"]
    kinds = cast("list[dict[str, Any]]", field.get("anyOf", []))
    if _NONE in kinds:
        left = [kind for kind in kinds if kind != _NONE]
        del field["anyOf"]
        field.update(left[0] if len(left) == 1 else {"anyOf": left})


def folder_of(path: Path) -> Path:
    """The folder that a file is in, as the user names it."""
    return path.absolute().parent.resolve()
