"""JWTs of an identity provider (OpenID Connect): the caller, from the signed claims."""

import asyncio
import hashlib
import logging
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit

import jwt
from pydantic import AfterValidator, Field, ValidationError

from replan.base.values import Value
from replan.server.callers.identity import Allowance, Identity, PlainName, Role
from replan.server.problems import RefusedError

logger = logging.getLogger(__name__)

_LONGEST = 16_000
_NAMES = "jwt-"  # how the names of all its callers begin
_LOCAL = ("127.0.0.1", "localhost", "::1")


def _safe(address: str) -> str:
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and parts.hostname in _LOCAL
    if not (parts.scheme == "https" or is_local) or not parts.hostname:
        raise ValueError("it is not an https address")
    return address


class JwtEntry(Value):
    """An identity provider whose JWTs are tokens.

    Attributes:
        issuer: The `iss` of its tokens.
        audience: The `aud` that names this server.
        jwks_url: Where its public keys are.
        algorithms: What they sign with; only algorithms with public keys.
        tenant_claim: The claim that has the tenant.
        tenant: The tenant of all its tokens, instead.
        user_claim: The claim that names the person.
        roles_claim: The claim that lists roles; names that are not Replan's are ignored.
        roles: The roles of all its tokens, instead.
        limits: What the runs of each person may take.
    """

    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    jwks_url: Annotated[str, AfterValidator(_safe)]
    algorithms: tuple[Literal["RS256", "PS256", "ES256", "EdDSA"], ...] = ("RS256", "ES256")
    tenant_claim: str = "tenant"
    tenant: PlainName | None = None
    user_claim: str = "sub"
    roles_claim: str = "roles"
    roles: tuple[Role, ...] = ()
    limits: Allowance = Allowance()


class Provider:
    """Reads the tokens of one identity provider."""

    def __init__(self, entry: JwtEntry) -> None:
        self._entry = entry
        self._keys = jwt.PyJWKClient(entry.jwks_url, timeout=5)

    @property
    def limits(self) -> Allowance:
        """What the runs of each person may take."""
        return self._entry.limits

    def named(self, name: str) -> Identity | None:
        """The limits of the person whose JWTs are called so; None for another name."""
        if not name.startswith(_NAMES):
            return None
        return Identity(name=name, roles=frozenset(), limits=self._entry.limits)

    async def identity_of(self, token: str) -> Identity | None:
        """Who calls with a token; None if it is not a valid one of this provider.

        Raises:
            RefusedError: The keys of the provider cannot be read.
        """
        if token.count(".") != 2 or len(token) > _LONGEST:  # noqa: PLR2004 - a JWT has three parts
            return None
        try:
            # What reads the keys waits for a server.
            return self._identity(await asyncio.to_thread(self._claims, token))
        except jwt.PyJWKClientConnectionError as error:
            logger.warning("keys cannot be read", extra={"url": self._entry.jwks_url})
            detail = "The keys of the identity provider cannot be read now. Try again."
            raise RefusedError(503, "keys_away", detail, retry_after=5) from error
        except (jwt.PyJWTError, ValidationError):
            return None

    def _claims(self, token: str) -> dict[str, Any]:
        return jwt.decode(
            token,
            self._keys.get_signing_key_from_jwt(token),
            algorithms=[*self._entry.algorithms],
            audience=self._entry.audience,
            issuer=self._entry.issuer,
            leeway=10,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )

    def _identity(self, claims: dict[str, Any]) -> Identity | None:
        """The caller in the claims; None without a tenant, a person and a role."""
        entry = self._entry
        tenant = entry.tenant or claims.get(entry.tenant_claim)
        user, claimed = claims.get(entry.user_claim), claims.get(entry.roles_claim)
        listed = cast("list[object]", claimed) if isinstance(claimed, list) else []
        roles = entry.roles or [item for item in listed if item in get_args(Role)]
        if not tenant or not roles or not isinstance(user, str) or not user:
            return None
        digest = hashlib.sha256(f"{entry.issuer}\n{claims['sub']}".encode()).hexdigest()
        return Identity(
            name=f"{_NAMES}{digest[:24]}",
            tenant=cast("Any", tenant),
            user=user,
            roles=frozenset(cast("Any", roles)),
            limits=entry.limits,
        )
