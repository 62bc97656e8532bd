"""Signs JSON with a key, so that who has the key knows its own word again."""

import hmac
import json

from pydantic import JsonValue


def signature_of(key: bytes, *signed: JsonValue) -> str:
    """Sign values, which needs the key; the order of keys in mappings does not matter."""
    return hmac.digest(key, json.dumps(signed, sort_keys=True).encode(), "sha256").hex()


def is_signature(value: object, key: bytes, *signed: JsonValue) -> bool:
    """Whether values were signed with this key and not changed since."""
    if not isinstance(value, str):
        return False
    expected = signature_of(key, *signed).encode()
    return hmac.compare_digest(value.encode("utf-8", "replace"), expected)
