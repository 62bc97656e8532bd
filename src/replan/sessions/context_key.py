"""The key of an agent: it signs and seals what contexts carry between two turns."""

from replan.errors import ConfigurationError
from replan.secrets.sources import learn_values

_SHORTEST = 16


def context_key_of(given: str | bytes | None) -> bytes | None:
    """Read a key.

    Raises:
        ConfigurationError: It is short.
    """
    if given is None:
        return None
    key = given.encode() if isinstance(given, str) else given
    if len(key) < _SHORTEST:
        fix = f"Give {_SHORTEST} bytes or more, for example secrets.token_bytes(32)."
        raise ConfigurationError("context_key", f"{len(key)} bytes", "this key is short", fix)
    learn_values([key])
    return key
