"""Where secret values are found: the environment, addresses, chat models."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from pydantic import SecretBytes, SecretStr

from replan.base.secrets.masking import KNOWN, is_certain

_WORDS = frozenset(
    (
        *("APIKEY", "AUTH", "AUTHORIZATION", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS", "DSN"),
        *("KEY", "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PWD"),
        *("SECRET", "SECRETS", "TOKEN", "TOKENS"),
    )
)
_ENDS = ("PASSWORD", "PASSWD", "TOKEN", "SECRET", "APIKEY", "PWD")
# Parts of names of variables that describe a secret without holding it.
_ABOUT = frozenset(
    (
        *("COUNT", "DIR", "ENV", "EXPIRES", "FILE", "HEADER", "HOST", "ID", "LIMIT", "MODE"),
        *("NAME", "PATH", "PORT", "SIZE", "SOCK", "TTL", "TYPE"),
    )
)
_FOLDERS = frozenset({"PWD", "OLDPWD"})
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\].*\.\w{1,5}\Z", re.DOTALL)
_USER_INFO = re.compile(r"://([^\s/?#:@]{0,500}):([^\s\"'<>]{1,500})@")
_USER = re.compile(r"://([^\s/?#:@]{1,500})@")
_NAMED = re.compile(
    r"(?i)(?:passw(?:or)?d|secret|token|key|passphrase)\s*=\s*(?:'([^']{1,500})'|([^\s'&;]{1,500}))"
)
_MOST_PARTS = 1_000
_HEADERS = ("default_headers", "default_query", "model_kwargs", "headers")


def learn_environment(environment: Mapping[str, str]) -> None:
    """Remember the values of variables whose names say that they hold a secret."""
    KNOWN.add(_in_environment(environment))


def learn_address(address: str) -> None:
    KNOWN.add(_in_address(address))


def learn_values(values: Iterable[str | bytes | SecretStr | None]) -> None:
    KNOWN.add(text for value in values if value is not None for text in _plain(value))


def learn_model(model: object) -> None:
    """Remember the keys of a chat model, or of the parts of a chain, and passwords in addresses."""
    left, seen = [model], dict[int, object]()
    while left and len(seen) < _MOST_PARTS:
        part = left.pop()
        fields = getattr(part, "__dict__", None)
        if isinstance(fields, dict) and id(part) not in seen:
            seen[id(part)] = part
            settings = cast("dict[str, Any]", fields)
            KNOWN.add(_in_fields(settings))
            left += [each for value in settings.values() for each in _parts(value)]


def holds_secret(name: str) -> bool:
    words = [word for word in re.split(r"[_\W]+", name.upper()) if word and not word.isdigit()]
    if not words or words[-1] in _ABOUT or name.upper() in _FOLDERS:
        return False
    return any(word in _WORDS or word.endswith(_ENDS) for word in words)


def _in_environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if "://" in value:
            yield from _in_address(value)
        if holds_secret(name) and not _PATH.fullmatch(value):
            yield value
        if name.startswith("OTEL_") and name.endswith("_HEADERS"):
            yield from _in_pairs(value)


def _in_pairs(pairs: str) -> Iterator[str]:
    """The secret ones of some headers, as in `x-api-key=VALUE,authorization=Basic%20VALUE`."""
    for pair in pairs.split(","):
        name, _, value = pair.partition("=")
        if holds_secret(name):
            yield from (value.strip(), unquote(value).strip().rpartition(" ")[2])


def _in_address(address: str) -> Iterator[str]:
    for match in _USER_INFO.finditer(address):
        yield from (match[2], unquote(match[2]))
    for match in _USER.finditer(address):
        # A token is alone before a host, as a user's name does.
        if is_certain(match[1]):
            yield match[1]
    for match in _NAMED.finditer(address):
        value = match[1] or match[2]
        yield from (value, unquote(value))


def _in_fields(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, SecretStr | SecretBytes):
            yield from _plain(value)
        elif isinstance(value, str) and "://" in value:
            yield from _in_address(value)
        elif isinstance(value, Mapping) and name in _HEADERS:
            yield from _in_headers(cast("Mapping[str, Any]", value))


def _in_headers(headers: Mapping[str, Any]) -> Iterator[str]:
    for name, value in headers.items():
        if isinstance(value, SecretStr | SecretBytes):
            yield from _plain(value)
        elif isinstance(value, Mapping):
            yield from _in_headers(cast("Mapping[str, Any]", value))
        elif isinstance(value, str) and holds_secret(str(name)):
            yield from (value, value.rpartition(" ")[2])


def _parts(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        value = [*cast("Mapping[Any, Any]", value).values()]
    several = isinstance(value, list | tuple)
    parts = cast("list[object]", [*value] if several else [value])
    return [part for part in parts if hasattr(part, "ainvoke")]


def _plain(value: str | bytes | SecretStr | SecretBytes) -> Iterator[str]:
    if isinstance(value, SecretStr | SecretBytes):
        value = value.get_secret_value()
    yield value if isinstance(value, str) else value.decode("utf-8", "replace")
