"""What is written of people's words and models' replies: plain, or encrypted with a key."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import JsonValue

from replan.adapters.storage.faults import (
    Part,
    Place,
    UnreadableRecordError,
    UnstorableValueError,
)
from replan.adapters.storage.stored_values import places
from replan.errors import ConfigurationError, StorageError
from replan.failures import describe

SALT_SIZE = 16
_TOKEN = b"replan"
_AES = "aes"
# Costs about 16 MB and 50 ms once, and makes guessing a weak key slow.
_WORK: dict[str, int] = {"n": 2**14, "r": 8, "p": 1}
_NONCE = 16
UNPLACED: Place = ()
"""The place of the token of a key, which is read before anything else."""


class Cipher:
    """AES-256 with a tag, which holds only at the place that the value was closed for."""

    def __init__(self, secret: bytes, salt: bytes) -> None:
        self._key = _stretch_key(secret, salt)

    def close(self, data: bytes, place: Place) -> bytes:
        cipher = self._new_cipher(place)
        text, tag = cipher.encrypt_and_digest(data)
        return bytes(cipher.nonce) + tag + text

    def open(self, data: bytes, place: Place) -> bytes:
        nonce, tag, text = data[:_NONCE], data[_NONCE : 2 * _NONCE], data[2 * _NONCE :]
        try:
            return self._new_cipher(place, nonce=nonce).decrypt_and_verify(text, tag)
        except ValueError as error:
            raise UnreadableRecordError(str(error), place) from error

    def named(self, text: str) -> str:
        """Return a token for a text that can be looked up and reveals nothing about it."""
        return hmac.new(self._key, f"name/{text}".encode("ascii"), "sha256").hexdigest()

    def _new_cipher(self, place: Place, **options: bytes) -> Any:
        from Crypto.Cipher import AES  # noqa: PLC0415 - an extra

        made: Any = AES
        cipher = made.new(self._key, made.MODE_EAX, **options)
        if place != UNPLACED:
            cipher.update(_place_as_json(place).encode("ascii"))
        return cipher


@lru_cache(maxsize=16)
def _stretch_key(secret: bytes, salt: bytes) -> bytes:
    # Storage that is made, upgraded or opened again has the same key.
    return hashlib.scrypt(secret, salt=salt, dklen=32, maxmem=2**26, **_WORK)


class Seal:
    """Closes what is written into a column as JSON, and opens what is read from it."""

    def __init__(self, cipher: Cipher | None = None) -> None:
        self.cipher = cipher

    def close(self, value: JsonValue, *place: Part) -> bytes:
        """Write a value, as ASCII, which holds every string, also a half character."""
        data = json.dumps(value).encode("ascii")
        return data if self.cipher is None else self.cipher.close(data, place)

    def named(self, ref: str) -> str:
        """Return what a reference to a text is in a column: of the digest of a text, no digest."""
        return ref if self.cipher is None else self.cipher.named(ref)

    def open(self, data: bytes, *place: Part) -> Any:
        plain = data if self.cipher is None else self.cipher.open(data, place)
        try:
            return json.loads(plain)
        except (ValueError, TypeError, RecursionError) as error:
            raise UnreadableRecordError(str(error), place) from error


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer of listed classes, whose every complaint has one name."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return super().dumps_typed(obj)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnstorableValueError(describe(error)) from error

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        try:
            return super().loads_typed(data)
        except (ValueError, TypeError, NotImplementedError) as error:
            raise UnreadableRecordError(str(error)) from error


@dataclass(frozen=True)
class Hidden:
    """A value on its way to the serializer, which a saver would else write in the clear."""

    value: Any


@dataclass(frozen=True)
class Placed:
    """A value on its way to the serializer, with the place where it will be."""

    value: Any
    place: Place


def placed_writes(
    table: str, config: RunnableConfig, task_id: str, writes: Sequence[tuple[str, Any]]
) -> list[tuple[str, Placed]]:
    found = places.of_writes(table, config, task_id, [channel for channel, _ in writes])
    return [
        (channel, Placed(value, place))
        for (channel, value), place in zip(writes, found, strict=True)
    ]


def tagged(kind: str, *place: Part) -> str:
    return f"{_place_as_json(place)}\n{kind}"


class SealedSerializer(SerializerProtocol):
    """Encrypts each value for the place where it will be, and opens nothing else."""

    def __init__(
        self, cipher: Cipher, plain: SerializerProtocol, place: Place | None = None
    ) -> None:
        self.cipher = cipher
        self.plain = plain
        self._place = place

    def at(self, place: Place) -> "SealedSerializer":
        return SealedSerializer(self.cipher, self.plain, place)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        value, place = (obj.value, obj.place) if isinstance(obj, Placed) else (obj, self._place)
        if place is None:
            raise TypeError("An encrypted value is written without the name of its place.")
        kind, data = self.plain.dumps_typed(value.value if isinstance(value, Hidden) else value)
        return f"{kind}+{_AES}", self.cipher.close(data, place)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        written, _, stored = data[0].partition("\n")
        if not stored:
            raise UnreadableRecordError("an encrypted value was read without the name of its place")
        place = tuple(json.loads(written))
        kind, _, cipher = stored.partition("+")
        if cipher != _AES:
            raise UnreadableRecordError("a plain value is in encrypted storage", place)
        try:
            return self.plain.loads_typed((kind, self.cipher.open(data[1], place)))
        except UnreadableRecordError as error:
            raise UnreadableRecordError(str(error), place) from error


def _place_as_json(place: Place) -> str:
    return json.dumps(place)


def with_allowed(serde: SerializerProtocol, names: Iterable[tuple[str, ...]]) -> SerializerProtocol:
    """Let a strict serializer restore some more classes."""
    if isinstance(serde, JsonPlusSerializer):
        return serde.with_msgpack_allowlist(names)
    if isinstance(serde, SealedSerializer):
        return SealedSerializer(serde.cipher, with_allowed(serde.plain, names))
    return serde


def cipher_of(key: str | bytes, salt: bytes) -> Cipher:
    secret = key.encode() if isinstance(key, str) else key
    if not secret:
        raise ConfigurationError("key", "", "The key of the storage is empty.", "Give a long key.")
    if find_spec("Crypto") is None:
        raise ConfigurationError(
            "key",
            "***",
            "Encryption needs pycryptodome.",
            "Install it with `pip install 'replan[encryption]'`.",
        )
    return Cipher(secret, salt)


def token_of(cipher: Cipher) -> bytes:
    """A text that only the same key can read, to recognise a wrong key immediately."""
    return cipher.close(_TOKEN, UNPLACED)


def reads_token(cipher: Cipher, token: bytes) -> bool:
    try:
        return cipher.open(token, UNPLACED) == _TOKEN
    except UnreadableRecordError:
        return False


Key = str | bytes | None
Facts = Mapping[str, bytes]


def new_facts(key: Key) -> Facts:
    """What is written into new storage, to be opened with this key from then on."""
    salt = secrets.token_bytes(SALT_SIZE)
    if key is None:
        return {"salt": salt, "token": b""}
    return {"salt": salt, "token": token_of(cipher_of(key, salt))}


def opened_with(
    key: Key, facts: Facts, plain: StrictSerializer, where: str
) -> tuple[SerializerProtocol, Seal]:
    salt, token = facts["salt"], facts["token"]
    if key is None:
        if token:
            raise StorageError(
                where,
                "It is encrypted, but no key was given.",
                "Give the key that it was created with (REPLAN_STORAGE_KEY, or `key=`).",
            )
        return plain, Seal()
    if not token:
        raise StorageError(
            where,
            "It is not encrypted, but a key was given.",
            "Open it without a key, or name another place for encrypted storage.",
        )
    cipher = cipher_of(key, salt)
    if not reads_token(cipher, token):
        raise StorageError(
            where,
            "It was encrypted with another key.",
            "Give the key that it was created with (REPLAN_STORAGE_KEY, or `key=`).",
        )
    return SealedSerializer(cipher, plain), Seal(cipher)
