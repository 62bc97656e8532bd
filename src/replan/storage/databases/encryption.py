"""Whether storage is encrypted, and with which key; LangGraph's serializer that encrypts."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from replan.base.errors import ConfigurationError, StorageError
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.faults import UnreadableRecordError
from replan.storage.databases.serializer import (
    PackedSerializer,
    StrictSerializer,
    strict_serializer,
)

Key = str | bytes | None
Facts = Mapping[str, bytes]

_SALT_SIZE = 16
_TOKEN = "replan"  # noqa: S105 - what is encrypted to recognise a wrong key
# Costs about 16 MB and 50 ms once, and makes guessing a weak key slow.
_WORK: dict[str, int] = {"n": 2**14, "r": 8, "p": 1}
_MARK = "aes"  # what the types of encrypted values end with


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
