"""What is written of people's words and models' replies: plain, or encrypted with a key.

Values of our own columns are bound to their row: copied to another one, they cannot be read.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from pydantic import JsonValue

from replan.errors import ConfigurationError, StorageError
from replan.storage.faults import Part, UnreadableRecordError
from replan.storage.serializer import PackedSerializer, StrictSerializer, strict_serializer

Key = str | bytes | None
Facts = Mapping[str, bytes]

_SALT_SIZE = 16
_TOKEN = "replan"  # noqa: S105 - what is encrypted to recognise a wrong key
# Costs about 16 MB and 50 ms once, and makes guessing a weak key slow.
_WORK: dict[str, int] = {"n": 2**14, "r": 8, "p": 1}
_NONCE = 16
_MARK = "aes"  # what the types of encrypted values end with


class Cipher:
    """Writes JSON into columns: with a key as AES-256 with a tag, bound to its row and column."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key  # 32 bytes; None: nothing is encrypted

    def encrypt(self, value: JsonValue, *location: Part) -> bytes:
        """Write a value for its place: its table, the key of its row, its column."""
        # As ASCII, which holds every string, also a half character.
        data = json.dumps(value, separators=(",", ":")).encode("ascii")
        if self.key is None:
            return data
        cipher = _aes(self.key, location)
        text, tag = cipher.encrypt_and_digest(data)
        return bytes(cipher.nonce) + tag + text

    def decrypt(self, data: bytes, *location: Part) -> Any:
        """Read a value from its place.

        Raises:
            UnreadableRecordError: It was written for another place, with another key, or changed.
        """
        try:
            if self.key is not None:
                nonce, tag, text = data[:_NONCE], data[_NONCE : 2 * _NONCE], data[2 * _NONCE :]
                data = _aes(self.key, location, nonce=nonce).decrypt_and_verify(text, tag)
            return json.loads(data)
        except (ValueError, TypeError, RecursionError) as error:
            raise UnreadableRecordError(str(error), location) from error

    def digest(self, name: str) -> str:
        """What the digest of a text is in a column: with a key, it tells nothing about the text."""
        if self.key is None:
            return name
        return hmac.new(self.key, f"name/{name}".encode("ascii"), "sha256").hexdigest()


def _aes(key: bytes, location: tuple[Part, ...], **options: bytes) -> Any:
    from Crypto.Cipher import AES  # noqa: PLC0415 - an extra

    made: Any = AES
    cipher = made.new(key, made.MODE_GCM, **options)
    cipher.update(json.dumps(location).encode("ascii"))
    return cipher


class SealedSerializer(EncryptedSerializer):
    """LangGraph's serializer that encrypts; it opens nothing that lacks the mark of the cipher."""

    @classmethod
    def with_key(cls, key: bytes | None, plain: StrictSerializer) -> SerializerProtocol:
        """A serializer with a key of 32 bytes."""
        from Crypto.Cipher import AES  # noqa: PLC0415 - an extra

        # Three times as fast as LangGraph's own choice, EAX.
        return cls.from_pycryptodome_aes(plain, key=key, mode=cast("Any", AES).MODE_GCM)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value; one that was inserted without the key is refused."""
        if data[0].partition("+")[2] != _MARK:
            raise UnreadableRecordError("a plain value is in encrypted storage")
        try:
            return super().loads_typed(data)
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableRecordError(str(error)) from error


def new_facts(key: Key) -> Facts:
    """What is written into new storage, to be opened with this key from then on."""
    salt = secrets.token_bytes(_SALT_SIZE)
    token = b"" if key is None else cipher_of(key, salt).encrypt(_TOKEN)
    return {"salt": salt, "token": token}


def opened_with(
    key: Key, facts: Facts, allow: Sequence[type], where: str
) -> tuple[SerializerProtocol, Cipher]:
    """The serializer of checkpoints and the cipher of columns, for storage with these facts.

    Args:
        key: The key, if any.
        facts: What the storage says of itself.
        allow: Classes that checkpoints restore, beside those of the state.
        where: The storage.

    Raises:
        StorageError: The storage was made with another key, without one, or with one.
    """
    token = facts["token"]
    if key is None:
        if token:
            raise StorageError(
                where,
                "It is encrypted, but no key was given.",
                "Give the key that it was created with (REPLAN_STORAGE_KEY, or `key=`).",
            )
        return strict_serializer(allow, PackedSerializer), Cipher()
    if not token:
        raise StorageError(
            where,
            "It is not encrypted, but a key was given.",
            "Open it without a key, or name another place for encrypted storage.",
        )
    cipher = cipher_of(key, facts["salt"])
    if not _reads_token(cipher, token):
        raise StorageError(
            where,
            "It was encrypted with another key.",
            "Give the key that it was created with (REPLAN_STORAGE_KEY, or `key=`).",
        )
    return SealedSerializer.with_key(cipher.key, strict_serializer(allow)), cipher


def _reads_token(cipher: Cipher, token: bytes) -> bool:
    try:
        return cipher.decrypt(token) == _TOKEN
    except UnreadableRecordError:
        return False


def cipher_of(key: str | bytes, salt: bytes) -> Cipher:
    """The cipher of a key, which is stretched with a salt.

    Raises:
        ConfigurationError: The key is empty, or the package that encrypts is missing.
    """
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
    return Cipher(_stretched(secret, salt))


@lru_cache(maxsize=16)
def _stretched(secret: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(secret, salt=salt, dklen=32, maxmem=2**26, **_WORK)
