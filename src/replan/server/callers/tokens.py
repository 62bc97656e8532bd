"""Tokens: read from a file or the environment, generated if none is configured, and compared."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

from pydantic import Field, SecretStr, ValidationError, model_validator

from replan.base.declared.mistakes import mistakes_in
from replan.base.declared.yaml_source import read_yaml
from replan.base.errors import ConfigurationError, InputError
from replan.base.secrets.sources import learn_values
from replan.base.values import Value
from replan.server.callers.identity import Allowance, Identity, PlainName, Role
from replan.server.callers.jwt_tokens import JwtEntry, Provider

TOKEN = "REPLAN_TOKEN"  # noqa: S105 - the name of a variable
"""The variable that contains the only token if there is no file of tokens."""

SHORTEST = 16
_LARGEST = 1_000_000
_OWNER = Identity(name="owner")


class TokenEntry(Value):
    """One token of a file.

    Attributes:
        name: What it is called in records and limits.
        token: The token itself, 16 characters or more.
        token_env: The variable of the environment that holds it, instead.
        tenant: Whose runs it sees; without one it sees all runs of the storage.
        user: The person who holds it.
        roles: What it may do: read, answer, run, operate.
        limits: What its runs may take.
    """

    name: PlainName
    token: SecretStr | None = None
    token_env: str | None = Field(default=None, min_length=1)
    tenant: PlainName | None = None
    user: str = Field(default="", max_length=200)
    roles: tuple[Role, ...] = Field(min_length=1)
    limits: Allowance = Allowance()

    @property
    def identity(self) -> Identity:
        """Who calls with it."""
        return Identity(
            name=self.name,
            tenant=self.tenant or "",
            user=self.user,
            roles=frozenset(self.roles),
            limits=self.limits,
        )


class TokenFile(Value):
    """A file of tokens; it has some, or an identity provider.

    Attributes:
        tokens: The tokens.
        jwt: An identity provider whose JWTs are tokens, too.
    """

    tokens: tuple[TokenEntry, ...] = ()
    jwt: JwtEntry | None = None

    @model_validator(mode="after")
    def _has_some(self) -> Self:
        if not self.tokens and self.jwt is None:
            raise ValueError("there is no token in it")
        return self


@dataclass(frozen=True)
class Tokens:
    """The tokens of a server, by the digests of their texts; the texts are not stored."""

    by_digest: Mapping[bytes, Identity]
    provider: Provider | None = None

    async def identity_of(self, token: str) -> Identity | None:
        """Find the caller of a token, in a time that reveals nothing about other tokens.

        Raises:
            RefusedError: The keys of the identity provider cannot be read.
        """
        digest, match = digest_of(token), None
        for known_digest, identity in self.by_digest.items():
            if hmac.compare_digest(known_digest, digest):
                match = identity
        if match is None and self.provider is not None:
            return await self.provider.identity_of(token)
        return match

    def named(self, name: str) -> Identity | None:
        """Who has the token of this name; of a JWT, what its provider bounds."""
        of_provider = self.provider and self.provider.named(name)
        return next(
            (identity for identity in self.by_digest.values() if identity.name == name), of_provider
        )

    @property
    def bound_money(self) -> bool:
        """Whether one of them has a limit on money."""
        limits = [identity.limits for identity in self.by_digest.values()]
        limits += [self.provider.limits] if self.provider is not None else []
        return any(allowance.money_a_day is not None for allowance in limits)


def one_token(token: str, identity: Identity = _OWNER) -> Tokens:
    """The only token of a server.

    Raises:
        ConfigurationError: It is short.
    """
    return Tokens({digest_of(_check_token(TOKEN, token)): identity})


def new_token() -> str:
    """Make up a token."""
    return secrets.token_urlsafe(24)


def read_tokens(path: Path, environment: Mapping[str, str]) -> Tokens:
    """Read a file of tokens.

    Raises:
        InputError: It cannot be read.
        ConfigurationError: It has mistakes; names the first one with its fix.
    """
    read = _file_of(path)
    entries = read.tokens
    identities: dict[bytes, Identity] = {}
    for index, entry in enumerate(entries):
        location = f"tokens[{index}]"
        if entry.name in [entry.name for entry in entries[:index]]:
            problem = "another token has this name"
            fix = "Give each token its own name."
            raise ConfigurationError(f"{location}.name", entry.name, problem, fix)
        digest = digest_of(_text_of(entry, location, environment))
        if digest in identities:
            problem = f"{identities[digest].name} has the same token"
            fix = "Give each its own token."
            raise ConfigurationError(f"{location}.token", "***", problem, fix)
        identities[digest] = entry.identity
    return Tokens(identities, None if read.jwt is None else Provider(read.jwt))


def _text_of(entry: TokenEntry, location: str, environment: Mapping[str, str]) -> str:
    if (entry.token is None) == (entry.token_env is None):
        fix = "Give one of them: token_env names a variable that holds the token."
        problem = "token and token_env are both given" if entry.token else "there is no token"
        raise ConfigurationError(f"{location}.token", None, problem, fix)
    if entry.token is not None:
        return _check_token(f"{location}.token", entry.token.get_secret_value())
    name = cast("str", entry.token_env)
    if name not in environment:
        fix = f"Set it, for example: export {name}=$(openssl rand -hex 24)."
        raise ConfigurationError(f"{location}.token_env", name, "this variable is not set", fix)
    return _check_token(f"{location}.token_env ({name})", environment[name])


def _check_token(field: str, token: str) -> str:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        problem = f"a token has {SHORTEST} or more letters, digits and signs, without blanks"
        raise ConfigurationError(field, "***", problem, "Make one: openssl rand -hex 24.")
    learn_values([token])
    return token


def digest_of(token: str) -> bytes:
    """What a token is known by: its text is not stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _file_of(path: Path) -> TokenFile:
    try:
        content = path.read_bytes()
        text = content[: _LARGEST + 1].decode("utf-8-sig")
    except FileNotFoundError:
        problem = "there is no such file. Check the path"
        raise InputError(f"The tokens in {path} cannot be read: {problem}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The tokens in {path} cannot be read: {error}.") from None
    if len(content) > _LARGEST:
        raise InputError(f"The tokens in {path} have more than {_LARGEST:,} bytes. Use fewer.")
    source = read_yaml(text)
    if source.mistakes:
        raise InputError(f"The tokens in {path} cannot be read: {source.mistakes[0]}")
    try:
        return TokenFile.model_validate(source.value)
    except ValidationError as error:
        see = f"Write a list under tokens:, each with {', '.join(TokenEntry.model_fields)}."
        first = next(mistakes_in(error, TokenFile, see))
        # What stands there may be a token.
        raise ConfigurationError(
            first.field or "tokens", "***", first.reason, first.fix, first.code
        ) from None
