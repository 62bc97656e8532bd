"""What is written into columns of people's words and models' replies: plain, or encrypted.

A value is bound to its row: copied to another one, it cannot be read.
"""

import hmac
import json
from typing import Any

from pydantic import JsonValue

from replan.storage.databases.faults import Part, UnreadableRecordError

_NONCE = 16  # bytes
# As ASCII, which holds every string, also a half character; made once, since rows are many.
_AS_JSON = json.JSONEncoder(separators=(",", ":")).encode


class Cipher:
    """Writes JSON into columns: with a key as AES-256 with a tag, bound to its row and column."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key  # 32 bytes; None: nothing is encrypted

    def encrypt(self, value: JsonValue, *location: Part) -> bytes:
        """Write a value for its place: its table, the key of its row, its column."""
        data = _AS_JSON(value).encode("ascii")
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
