"""The facts that storage keeps about itself: with which key it was made, if with one."""

import secrets
from collections.abc import Mapping

from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.adapters.storage.stored_values.sealing import (
    SALT_SIZE,
    Seal,
    SealedSerializer,
    StrictSerializer,
    cipher_of,
    reads_token,
    token_of,
)
from replan.errors import StorageError

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
