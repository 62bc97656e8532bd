"""The rows of items: how they are asked for, and how namespaces are in them."""

from typing import Any

from langgraph.store.base import PutOp
from sqlalchemy import Select, bindparam, column, delete, select, table

from replan.adapters.storage.store.operations import Namespace

# Times are read where they are shown: thousands of rows may be ranked for a few.
_COLUMNS = ("id", "namespace", "key", "value", "created_at", "updated_at")
items = table("replan_items", *map(column, _COLUMNS))

SAME = (items.c.namespace == bindparam("of"), items.c.key == bindparam("named"))
"""The item of one place."""

DELETED = delete(items).where(*SAME)  # the item of one place goes


def below(prefix: str, *columns: Any) -> Select[Any]:
    """Ask for all items whose namespaces begin with a written one."""
    query = select(*(columns or (items,))).select_from(items)
    if not prefix:
        return query
    # The sign behind the point.
    return query.where(items.c.namespace >= prefix, items.c.namespace < f"{prefix[:-1]}/")


def place_of(op: PutOp) -> dict[str, str]:
    return {"namespace": written(op.namespace), "key": op.key}


def written(namespace: Namespace) -> str:
    return "".join(f"{label}." for label in namespace)


def read_namespace(text: str) -> Namespace:
    return tuple(text.split(".")[:-1])
