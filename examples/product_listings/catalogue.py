"""The catalogue: products that can be listed, and their listings, in SQLite or PostgreSQL.

What a request did is kept under its idempotency key, in the same transaction: who repeats the
request gets the same answer, and nothing happens twice.
"""

import json
from typing import Any

import sqlalchemy as sql

META = sql.MetaData()
PRODUCTS = sql.Table(
    "products",
    META,
    sql.Column("id", sql.String(20), primary_key=True),
    sql.Column("title", sql.String(200), nullable=False),
    sql.Column("price", sql.Float, nullable=False),
)
LISTINGS = sql.Table(
    "listings",
    META,
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("product_center_id", sql.String(20), sql.ForeignKey("products.id"), nullable=False),
    sql.Column("title", sql.String(200), nullable=False),
    sql.Column("price", sql.Float, nullable=False),
    sql.Column("description", sql.Text, nullable=False, default=""),
    sql.Column("is_active", sql.Boolean, nullable=False, default=False),
)
REQUESTS = sql.Table(
    "requests",
    META,
    sql.Column("key", sql.String(64), primary_key=True),
    sql.Column("status", sql.Integer, nullable=False),
    sql.Column("answer", sql.Text, nullable=False),
)
SHIPPED = [
    {"id": "PC-100", "title": "Desk lamp", "price": 29.0},
    {"id": "PC-200", "title": "Office chair", "price": 129.0},
    {"id": "PC-300", "title": "Bookshelf", "price": 89.0},
]

Answer = tuple[int, dict[str, Any]]
"""The status of an answer, and its fields."""


class Catalogue:
    """Products and listings."""

    def __init__(self, dsn: str = "sqlite:///listings.db") -> None:
        """Open the catalogue; missing tables are created."""
        self._engine = sql.create_engine(_with_driver(dsn))
        META.create_all(self._engine)
        with self._engine.begin() as work:
            if work.scalar(sql.select(sql.func.count()).select_from(PRODUCTS)) == 0:
                work.execute(sql.insert(PRODUCTS), SHIPPED)

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()

    def done(self, method: str, path: list[str], given: dict[str, Any], key: str) -> Answer:
        """Do a request once: if its key was used before, return the earlier answer."""
        with self._engine.begin() as work:
            if key and (kept := _kept(work, key)) is not None:
                return kept
            answer = _done(work, method, path, given)
            if key and method != "GET":
                status, fields = answer
                row = {"key": key, "status": status, "answer": json.dumps(fields)}
                # Of two at the same time, the second one fails here, and nothing of it is stored.
                work.execute(sql.insert(REQUESTS).values(**row))
            return answer

    def listings(self) -> list[dict[str, Any]]:
        """All listings."""
        with self._engine.begin() as work:
            rows = work.execute(sql.select(LISTINGS).order_by(LISTINGS.c.number))
            return [_shown(row) for row in rows]


def _with_driver(dsn: str) -> str:
    return dsn.replace("postgresql://", "postgresql+psycopg://", 1)


def _kept(work: sql.Connection, key: str) -> Answer | None:
    row = work.execute(sql.select(REQUESTS).where(REQUESTS.c.key == key)).one_or_none()
    return None if row is None else (row.status, json.loads(row.answer))


def _done(work: sql.Connection, method: str, path: list[str], given: dict[str, Any]) -> Answer:
    match method, path:
        case "POST", ["listings"]:
            return _published(work, str(given.get("product_center_id", "")))
        case "GET", ["listings", name]:
            return _found(work, name)
        case "PATCH", ["listings", name]:
            known = {"title", "price", "description"}
            if not given or not given.keys() <= known:
                return 422, {"error": f"give some of {', '.join(sorted(known))}"}
            return _changed(work, name, given)
        case "POST", ["listings", name, ("activate" | "deactivate") as what]:
            return _changed(work, name, {"is_active": what == "activate"})
        case _:
            return 404, {"error": "there is no such address"}


def _published(work: sql.Connection, product: str) -> Answer:
    row = work.execute(sql.select(PRODUCTS).where(PRODUCTS.c.id == product)).one_or_none()
    if row is None:
        return 404, {"error": f"there is no product {product}"}
    fields = {"product_center_id": row.id, "title": row.title, "price": row.price}
    made = sql.insert(LISTINGS).values(**fields).returning(LISTINGS.c.number)
    _, listing = _found(work, f"PL-{work.execute(made).scalar_one()}")
    return 201, listing


def _found(work: sql.Connection, name: str) -> Answer:
    row = work.execute(sql.select(LISTINGS).where(_is(name))).one_or_none()
    return (404, {"error": f"there is no listing {name}"}) if row is None else (200, _shown(row))


def _changed(work: sql.Connection, name: str, fields: dict[str, Any]) -> Answer:
    work.execute(sql.update(LISTINGS).where(_is(name)).values(**fields))
    return _found(work, name)


def _is(name: str) -> sql.ColumnElement[bool]:
    digits = name.removeprefix("PL-")
    return LISTINGS.c.number == (int(digits) if digits.isdecimal() else -1)


def _shown(row: Any) -> dict[str, Any]:
    fields = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's name for a row as a mapping
    return {"product_listing_id": f"PL-{fields.pop('number')}", **fields}
