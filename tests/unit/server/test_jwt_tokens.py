"""JWTs of an identity provider, whose keys are read over HTTP."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from http_answers import Answering, serving
from replan.server.callers.jwt_tokens import JwtEntry, Provider
from replan.server.problems import RefusedError

OWN, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
CLAIMS = {
    "iss": "https://id.example",
    "aud": "replan",
    "sub": "auth0|anna",
    "tenant": "north",
    "roles": ["run", "dance"],
}


class Keys(Answering, BaseHTTPRequestHandler):
    """The public keys of the provider."""

    def do_GET(self):
        algorithm = jwt.algorithms.ECAlgorithm
        key = json.loads(algorithm.to_jwk(OWN.public_key())) | {"kid": "1", "alg": "ES256"}
        self.give(200, json.dumps({"keys": [key]}).encode())


@pytest.fixture
def entry():
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Keys)) as url:
        yield JwtEntry(issuer="https://id.example", audience="replan", jwks_url=f"{url}/keys")


def token(key=OWN, algorithm="ES256", **changes):
    claims = {**CLAIMS, "exp": time.time() + 60, **changes}
    claims = {name: each for name, each in claims.items() if each is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": "1"})


async def test_a_jwt_says_who_calls_and_one_that_is_wrong_is_nobodys(entry):
    provider = Provider(entry)
    anna = await provider.identity_of(token())
    assert (anna.tenant, anna.user, anna.roles) == ("north", "auth0|anna", {"run"})
    assert anna.name == (await provider.identity_of(token(extra=1))).name
    header, claims, signature = token().split(".")
    wrong = {
        "another key": token(OTHER),
        "no signature": token(None, "none"),
        "a secret for a key": token("a-secret-that-is-shared-with-nobody", "HS256"),
        "changed": f"{header}.{claims[:-2]}AA.{signature}",
        "expired": token(exp=time.time() - 60),
        "without an end": token(exp=None),
        "another audience": token(aud="shop"),
        "another issuer": token(iss="https://evil.example"),
        "no tenant": token(tenant=None),
        "an odd tenant": token(tenant="no/rth"),
        "no role": token(roles=["dance"]),
        "not one": "a.b.c",
    }
    for why, text in wrong.items():
        assert await provider.identity_of(text) is None, why
    fixed = Provider(entry.replace(tenant="south", roles=("read",)))
    assert (await fixed.identity_of(token(tenant=None, roles=None))).tenant == "south"


async def test_keys_that_cannot_be_read_are_no_wrong_token(entry):
    away = Provider(entry.replace(jwks_url="http://127.0.0.1:9/keys"))
    with pytest.raises(RefusedError, match="cannot be read now") as raised:
        await away.identity_of(token())
    assert raised.value.problem.status == 503
