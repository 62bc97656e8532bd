"""LangGraph's store in SQL: one implementation for SQLite and PostgreSQL, plain and encrypted."""

import asyncio
import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)
from pydantic import JsonValue

from replan.base.errors import UsageError
from replan.base.failures import describe
from replan.base.texts.ranking import rank
from replan.base.texts.storable import DEEPEST, LARGEST, unstorable
from replan.base.values import leaves
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection, Database, Row, moment
from replan.storage.databases.faults import UnreadableRecordError, fault_of, storage_error

LONGEST = 1_000
"""Bytes of a namespace and of a key: PostgreSQL has room for little more in an index."""

Namespace = tuple[str, ...]


def checked(op: Op) -> Op:
    """Return an operation that the store can do."""
    validate_op_namespace(op)
    if isinstance(op, GetOp | PutOp):
        _check_names(key=str(op.key), namespace=".".join(op.namespace))
    if isinstance(op, PutOp):
        return _checked_put(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        for name, number in (("limit", op.limit), ("offset", op.offset)):
            if number < 0:
                raise UsageError(f"{name}: It is {number}. Give 0 or more.")
    if isinstance(op, SearchOp):
        _check_names(namespace=".".join(op.namespace_prefix))
        for wanted in (op.filter or {}).values():
            _check_operators(wanted)
    return op


def has(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value passes the filter of a search."""
    return all(_fits_filter(value.get(name), each) for name, each in (wanted or {}).items())


def listed(op: ListNamespacesOp, namespaces: Iterable[Namespace]) -> list[Namespace]:
    """The namespaces that an operation asks for, in their order."""
    conditions = op.match_conditions or ()
    matching = (
        namespace for namespace in namespaces if all(_matches(one, namespace) for one in conditions)
    )
    cut = sorted(
        {namespace if op.max_depth is None else namespace[: op.max_depth] for namespace in matching}
    )
    return cut[op.offset : op.offset + op.limit]


def _checked_put(op: PutOp) -> PutOp:
    if op.ttl is not None:
        raise NotImplementedError("This store keeps items until they are deleted: leave ttl out.")
    if not op.namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    key = str(op.key)
    is_list = isinstance(cast("object", op.index), list)
    if not (op.index is None or op.index is False or (is_list and _are_texts(op.index))):
        raise UsageError(
            "index: Give False, or a list of fields such as 'text' or 'parts[*].text'."
        )
    if op.value is None:
        return op._replace(key=key)
    value = dict(op.value)
    problem = _json_problem(value, "value")
    if problem:
        where = ".".join(op.namespace)
        raise UsageError(f"The item {key!r} of {where} cannot be kept: {problem}")
    return op._replace(key=key, value=value)


def _check_names(**names: str) -> None:
    for what, text in names.items():
        problem = unstorable(text)
        if not problem and len(text.encode()) > LONGEST:
            problem = f"It has more than {LONGEST:,} bytes. Give a shorter one."
        if problem:
            raise UsageError(f"The {what} of an item: {problem}")


def _json_problem(value: object, path: str, depth: int = 0) -> str:
    """Describe which part of a value is not JSON that every store keeps; empty if none is."""
    if not isinstance(value, dict | list):
        problem = _leaf_problem(value)
    elif depth == DEEPEST:
        problem = f"It is nested deeper than {DEEPEST} levels."
    else:
        parts = cast("dict[object, object] | list[object]", value)
        return next(filter(None, _part_problems(parts, path, depth + 1)), "")
    return problem and f"{path}: {problem}"


def _leaf_problem(value: object) -> str:
    if value is None or isinstance(value, str | int):
        return unstorable(value)
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"It is {value}. Give a finite number."
    kind = type(value).__name__
    return f"It is of the type {kind}, which JSON does not have. Write it as text."


def _part_problems(
    value: dict[object, object] | list[object], path: str, depth: int
) -> Iterator[str]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield _json_problem(item, f"{path}[{at}]", depth)
        return
    for key, part in value.items():
        if not isinstance(key, str):
            yield f"{path}: The key {key!r} is not text. Write it as text."
        elif problem := unstorable(key):
            yield f"{path}: One of its keys cannot be kept. {problem}"
        yield _json_problem(part, f"{path}.{key}", depth)


def _are_texts(parts: Iterable[object]) -> bool:
    return all(isinstance(part, str) for part in parts)


def _fits_filter(value: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        parts = cast("dict[str, object]", wanted)
        if _has_operators(parts):
            return all(_compare(value, name, part) for name, part in parts.items())
        return isinstance(value, dict) and has(cast("dict[str, object]", value), parts)
    if isinstance(wanted, list | tuple):
        stored, all_wanted = cast("Any", value), cast("Sequence[object]", wanted)
        return (
            isinstance(value, list)
            and len(stored) == len(all_wanted)
            and all(map(_fits_filter, stored, all_wanted))
        )
    return value == wanted


def _compare(value: object, name: str, other: object) -> bool:
    compare = _OPERATORS[name]
    if name in ("$eq", "$ne"):
        return compare(value, other)
    # As LangGraph: numbers, also such as those in texts. Else texts, so that dates can be compared.
    left, right = _number(value), _number(other)
    if left is not None and right is not None:
        return compare(left, right)
    return isinstance(value, str) and isinstance(other, str) and compare(value, other)


def _number(value: object) -> float | None:
    try:
        return float(cast("Any", value))
    except (TypeError, ValueError, OverflowError):
        return None


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _has_operators(wanted: Mapping[str, object]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _check_operators(wanted: object) -> None:
    if not isinstance(wanted, dict):
        return
    parts = cast("dict[str, object]", wanted)
    for name, value in parts.items():
        if _has_operators(parts) and name not in _OPERATORS:
            raise UsageError(f"filter: {name} is unknown. Use one of: {', '.join(_OPERATORS)}.")
        _check_operators(value)


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise UsageError(f"match_type: {condition.match_type} is unknown. Use prefix or suffix.")
    size = len(condition.path)
    part = namespace[:size] if condition.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(
        wanted in ("*", label) for label, wanted in zip(part, condition.path, strict=True)
    )


T = TypeVar("T")
Rows = Sequence[Row]

_KEPT, _SMALL = 20_000, 2_000
"""How many items stay decrypted and read, and how large these are at most, in bytes."""

_FEW = 50  # rows up to which the event loop encrypts or reads them itself

_AWAIT = (
    "The event loop cannot wait for the storage without standing still. "
    "Use the asynchronous method, such as `await store.aget(...)`."
)

_SELECT = "SELECT namespace, key, value, created_at, updated_at FROM replan_items"

_PUT = """
    INSERT INTO replan_items (namespace, key, value, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (namespace, key) DO UPDATE
    SET id = excluded.id, value = excluded.value, updated_at = excluded.updated_at"""


class _Stored(NamedTuple):
    """A row. Its times are read where they are shown: thousands may be ranked for a few."""

    namespace: str
    key: str
    value: bytes
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class _Content:
    """An item's value, and LangGraph's `index` of it."""

    value: dict[str, Any]
    index: list[str] | bool | None  # which fields are searched; False: none, None: all

    @cached_property
    def text(self) -> str:
        """What a query searches."""
        if self.index is False:
            return ""
        if isinstance(self.index, list):
            paths = (tokenize_path(path) for path in self.index)
            return "\n".join(text for path in paths for text in get_text_at_path(self.value, path))
        return "\n".join(str(leaf) for leaf in leaves(self.value) if _is_text(leaf))


@dataclass(frozen=True)
class _Batch:
    """Operations, and the rows that they write."""

    ops: Sequence[Op]
    deleted: Sequence[Sequence[object]]
    put: Sequence[Sequence[object]]

    @property
    def writes(self) -> bool:
        return bool(self.deleted or self.put)

    def run(self, connection: Connection) -> list[Rows]:
        """Read the rows that each operation may need, then write."""
        results = [_read(connection, op) for op in self.ops]
        if self.deleted:
            statement = "DELETE FROM replan_items WHERE namespace = ? AND key = ?"
            connection.change_many(statement, self.deleted)
        if self.put:
            connection.change_many(_PUT, self.put)
        return results


class Store(BaseStore):
    """LangGraph's `BaseStore`, of an open storage; `Storage.store` is one.

    Items are found by the words of their texts, and the best come first. They are kept until they
    are deleted, whatever happens to runs and threads. From an event loop, await the asynchronous
    methods; the others are for threads.
    """

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher
        # To decrypt takes longer than all else of a search.
        self._decrypt_once = lru_cache(_KEPT)(self._decrypt)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations from a thread without an event loop.

        Raises:
            asyncio.InvalidStateError: It is called in an event loop, which the database would hold
                up.
        """
        batch = self._batch([checked(op) for op in ops])
        return self._results(batch.ops, self._database.here(self._run(batch), _AWAIT))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations: all reads see what was there before, and the last put of a key counts."""
        operations = [checked(op) for op in ops]
        puts = sum(isinstance(op, PutOp) for op in operations)
        batch = await _in_thread_if_many(puts, lambda: self._batch(operations))
        rows = await self._run(batch)
        count = sum(map(len, rows))
        return await _in_thread_if_many(count, lambda: self._results(operations, rows))

    async def _run(self, batch: _Batch) -> list[Rows]:
        return await (self._database.write if batch.writes else self._database.read)(batch.run)

    def _batch(self, ops: Sequence[Op]) -> _Batch:
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        # Written in one order by all, so that two batches do not wait for each other.
        rows = sorted(self._row(op) for op in puts.values() if op.value is not None)
        deleted = sorted(_row_key(op) for op in puts.values() if op.value is None)
        return _Batch(ops, deleted, rows)

    def _row(self, op: PutOp) -> _Stored:
        (namespace, key), now = _row_key(op), moment(datetime.fromtimestamp(time.time(), UTC))
        value = cast("JsonValue", {"value": dict(op.value or {}), "index": op.index})
        data = self._cipher.encrypt(value, "replan_items", namespace, key, "value")
        return _Stored(namespace, key, data, now, now)

    def _results(self, ops: Sequence[Op], rows_by_op: Sequence[Rows]) -> list[Result]:
        try:
            return [self._result(op, rows) for op, rows in zip(ops, rows_by_op, strict=True)]
        except UnreadableRecordError as error:
            fault = fault_of(error)
            raise storage_error(self._database.where, cast("Any", fault)) from error

    def _result(self, op: Op, rows: Rows) -> Result:
        if isinstance(op, GetOp):
            return next((self._item(_Stored(*row)) for row in rows), None)
        if isinstance(op, SearchOp):
            return self._search_items(op, [_Stored(*row) for row in rows])
        if isinstance(op, ListNamespacesOp):
            return listed(op, (_read_namespace(text) for (text,) in rows))
        return None

    def _search_items(self, op: SearchOp, rows: Sequence[_Stored]) -> list[SearchItem]:
        if not (op.filter or op.query):
            return [_search_item(self._item(row), None) for row in rows]
        fitting = [row for row in rows if has(self._content(row).value, op.filter)]
        scores: Iterable[tuple[int, float | None]] = ((at, None) for at in range(len(fitting)))
        if op.query:
            # Of equally good texts the last counts more, and rows begin with the newest.
            fitting.reverse()
            scores = rank(op.query, [self._content(row).text for row in fitting])
        page = [*scores][op.offset : op.offset + op.limit]
        return [_search_item(self._item(fitting[at]), score) for at, score in page]

    def _item(self, row: _Stored) -> Item:
        # A copy: who gets it may change it.
        return Item(
            value=deepcopy(self._content(row).value),
            key=row.key,
            namespace=_read_namespace(row.namespace),
            created_at=datetime.fromisoformat(row.created_at),
            updated_at=datetime.fromisoformat(row.updated_at),
        )

    def _content(self, row: _Stored) -> _Content:
        is_small = isinstance(cast("object", row.value), bytes) and len(row.value) <= _SMALL
        decrypt = self._decrypt_once if is_small else self._decrypt
        return decrypt(row.value, row.namespace, row.key)

    def _decrypt(self, value: bytes, *place: str) -> _Content:
        full_place = ("replan_items", *place, "value")
        try:
            content = self._cipher.decrypt(value, *full_place)
            return _Content(dict(content["value"]), content["index"])
        except (TypeError, ValueError, KeyError) as error:
            raise UnreadableRecordError(describe(error), full_place) from error


def _read(connection: Connection, op: Op) -> Rows:
    """The rows that an operation may need."""
    if isinstance(op, GetOp):
        place = [_written(op.namespace), str(op.key)]
        return connection.query(f"{_SELECT} WHERE namespace = ? AND key = ?", place)
    if isinstance(op, SearchOp):
        return _candidates(connection, op)
    if isinstance(op, ListNamespacesOp):
        return connection.query("SELECT DISTINCT namespace FROM replan_items")
    return ()


def _candidates(connection: Connection, op: SearchOp) -> Rows:
    """The rows that a search may find; all that it finds, if nothing is left to be judged."""
    values: list[object] = []
    below = bounded = ""
    if prefix := _written(op.namespace_prefix):
        # Up to the sign behind the point.
        below = " WHERE namespace >= ? AND namespace < ?"
        values += [prefix, f"{prefix[:-1]}/"]
    if not (op.filter or op.query):
        bounded = " LIMIT ? OFFSET ?"
        values += [min(op.limit, LARGEST), min(op.offset, LARGEST)]
    return connection.query(f"{_SELECT}{below} ORDER BY updated_at DESC, id DESC{bounded}", values)


def _row_key(op: PutOp) -> tuple[str, str]:
    return _written(op.namespace), op.key


def _written(namespace: Namespace) -> str:
    return "".join(f"{label}." for label in namespace)


def _read_namespace(text: str) -> Namespace:
    return tuple(text.split(".")[:-1])


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(
        item.namespace, item.key, item.value, item.created_at, item.updated_at, score=score
    )


def _is_text(leaf: object) -> bool:
    return isinstance(leaf, str | int | float) and not isinstance(leaf, bool)


async def _in_thread_if_many(count: int, work: Callable[[], T]) -> T:
    """Do work on this many rows; in a thread, if it would hold up the event loop."""
    return await asyncio.to_thread(work) if count > _FEW else work()
