"""Checks whether a stored order is from this user, even if others can write to the storage.

An order names files to write, a team to import and a server that is sent a key. So it is signed
with a key of this user, and without that signature these things are asked for again.
"""

import getpass
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from platformdirs import user_config_path
from pydantic import JsonValue

from replan.base.secrets.signature import is_signature, signature_of
from replan.cli.user_files.orders import SIGNATURE, Order

_SIZE = 32
_DOES = {
    "team": ("imports the team", "--team"),
    "model": ("asks the model", "--model"),
    "base_url": ("sends prompts and a key to", "--base-url"),
    "directory": ("reads files in", "--dir"),
    "out": ("writes reports into", "--out"),
    "plan_out": ("writes its plan to", "--plan-out"),
}
"""The effect of a field of an order, and the option that repeats it."""


def sign(order: JsonValue, run_id: str) -> JsonValue:
    """Return an order with the signature of this user; without one where no key can be kept."""
    key = user_key()
    if key is None or not isinstance(order, dict):
        return order
    return {**order, SIGNATURE: signature_of(key, run_id, order)}


def is_signed(record: JsonValue, run_id: str) -> bool:
    """Whether an order was stored by this user for exactly this run, and was not changed."""
    if not isinstance(record, dict):
        return False
    order: JsonValue = {name: value for name, value in record.items() if name != SIGNATURE}
    key = _read_key(_path())
    return key is not None and is_signature(record.get(SIGNATURE), key, run_id, order)


def user_name() -> str:
    """The name of this user; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # neither a variable nor the system says so
        return ""


def effects_of(order: Order, given_again: Collection[str]) -> list[str]:
    """What an order does by its fields, those left out that were given again."""
    effects = [
        f"{does} '{getattr(order, name)}' ({option})"
        for name, (does, option) in _DOES.items()
        if name not in given_again and getattr(order, name) is not None
    ]
    files = [f"sends the file '{path}' (start again with --file)" for path in order.files]
    return effects + files


def _path() -> Path:
    return user_config_path("replan", appauthor=False) / "order.key"


def user_key() -> bytes | None:
    """The key of this user, created if there is none."""
    path = _path()
    with suppress(OSError):
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_key(path)
    return _read_key(path)


def _write_key(path: Path) -> None:
    """Write a key that is whole from the first moment; the first of two processes counts."""
    draft = path.with_name(f".{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == _SIZE else None
