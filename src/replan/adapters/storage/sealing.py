"""What is written of people's words and models' replies: plain, or encrypted with a key."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import JsonValue

from replan.adapters.storage.faults import UnreadableRecordError
from replan.adapters.storage.moved_names import MOVED, renamed
from replan.errors import ConfigurationError

SALT_SIZE = 16
_TOKEN = b"replan"
_AES = "aes"
# Costs about 16 MB and 50 ms once, and makes guessing a weak key slow.
_WORK: dict[str, int] = {"n": 2**14, "r": 8, "p": 1}


class Seal:
    """Closes what is written into a column as JSON, and opens what is read from it."""

    def __init__(self, cipher: CipherProtocol | None = None) -> None:
        self._cipher = cipher

    def close(self, value: JsonValue) -> bytes:
        """Write a value, as ASCII, which holds every string, also a half character."""
        data = json.dumps(value).encode("ascii")
        return data if self._cipher is None else self._cipher.encrypt(data)[1]

    def open(self, data: bytes) -> Any:
        """Read it back.

        Raises:
            UnreadableRecordError: It is damaged or was changed.
        """
        try:
            return json.loads(data if self._cipher is None else self._cipher.decrypt(_AES, data))
        except ValueError as error:
            raise UnreadableRecordError(str(error)) from error


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer of listed classes, whose every complaint has one name."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Restore a value.

        Raises:
            UnreadableRecordError: It is damaged, or of a kind that is never read, such as a pickle.
        """
        kind, packed = data
        try:
            now = renamed(packed, MOVED) if kind == "msgpack" else packed
            return super().loads_typed((kind, now))
        except (ValueError, TypeError, NotImplementedError) as error:
            raise UnreadableRecordError(str(error)) from error


@dataclass(frozen=True)
class Hidden:
    """A text on its way to the serializer, which a saver would write in the clear as a text."""

    text: str


class SealedSerializer(EncryptedSerializer):
    """LangGraph's encrypted serializer, which takes nothing that is not encrypted.

    The parent reads plain data too, so that whoever can write the database but has no key could
    put a state of their own making into it.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encrypt."""
        return super().dumps_typed(obj.text if isinstance(obj, Hidden) else obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decrypt.

        Raises:
            UnreadableRecordError: The data are plain, were changed, or are under another key.
        """
        if "+" not in data[0]:
            raise UnreadableRecordError("a plain value stands in encrypted storage")
        try:
            return super().loads_typed(data)
        except (ValueError, AssertionError) as error:
            raise UnreadableRecordError(str(error)) from error


def with_allowed(serde: SerializerProtocol, names: Iterable[tuple[str, ...]]) -> SerializerProtocol:
    """Let a strict serializer restore some more classes."""
    if isinstance(serde, JsonPlusSerializer):
        return serde.with_msgpack_allowlist(names)
    if isinstance(serde, SealedSerializer):
        return SealedSerializer(serde.cipher, with_allowed(serde.serde, names))
    return serde


def encrypted(
    plain: StrictSerializer, key: str | bytes, salt: bytes
) -> tuple[SealedSerializer, Seal]:
    """Make the serializer of the checkpoints and the seal of all else from one key.

    Raises:
        ConfigurationError: The key is empty, or pycryptodome is not installed.
    """
    secret = key.encode() if isinstance(key, str) else key
    if not secret:
        raise ConfigurationError("key", "", "The key of the storage is empty.", "Give a long one.")
    derived = hashlib.scrypt(secret, salt=salt, dklen=32, maxmem=2**26, **_WORK)
    try:
        made = EncryptedSerializer.from_pycryptodome_aes(plain, key=derived)
    except ImportError as error:
        raise ConfigurationError(
            "key",
            "***",
            "Encryption needs pycryptodome.",
            "Install it with `pip install 'replan[encryption]'`.",
        ) from error
    return SealedSerializer(made.cipher, plain), Seal(made.cipher)


def token_of(serializer: SerializerProtocol) -> bytes:
    """A text that only the same key can read, to tell a wrong key at once."""
    return serializer.dumps_typed(_TOKEN)[1]


def reads_token(serializer: SerializerProtocol, token: bytes) -> bool:
    """Whether a token was made with this serializer's key."""
    try:
        return serializer.loads_typed((f"bytes+{_AES}", token)) == _TOKEN
    except UnreadableRecordError:
        return False
