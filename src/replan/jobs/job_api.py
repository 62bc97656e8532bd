"""Calls of APIs for jobs: at the addresses that the spec names, and nowhere else."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote, urlencode

import httpx2
from pydantic import JsonValue

from replan.base.errors import ReplyTooLongError
from replan.base.failures import describe
from replan.base.secrets.masking import without_secrets
from replan.base.values import text_or_json
from replan.jobs.action_executor import as_json
from replan.jobs.actions import ActionCall, Outcome, not_done, unanswered
from replan.jobs.spec.job_spec import JobSpec
from replan.models.providers.reply_body import whole

LONGEST_ANSWER = 1_000_000  # bytes of an answer that are read

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})

_PASSING = frozenset({408, 425, 429})
_IN_ADDRESS = frozenset({"GET", "DELETE"})
_LONGEST_ERROR = 300
_OPENING = 0.9  # of the time of a call


class _RefusedError(ValueError):
    """The call is not made."""


class ApiExecutor:
    """Calls APIs over HTTP."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment  # where the secrets of specs are

    async def execute(self, call: ActionCall) -> Outcome:
        """Make one call; a failure is an outcome, and says whether the call may have had effect."""
        try:
            request = self._request(call)
        except _RefusedError as refusal:
            return not_done(call, str(refusal))
        seconds = call.spec.api_timeout
        try:
            async with self._client(seconds) as client, asyncio.timeout(seconds):
                response = await client.send(client.build_request(**request), stream=True)
                response = await whole(response, LONGEST_ANSWER)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            text = f"{request['url']} cannot be reached: {describe(error)}"
            return not_done(call, text, is_transient=True)
        except TimeoutError:
            text = f"the API did not answer within {seconds:g} s"
            return unanswered(call, text, is_transient=True)
        except (httpx2.HTTPError, ReplyTooLongError) as error:
            return unanswered(call, describe(error), is_transient=True)
        return _read(response, call)

    def _client(self, seconds: float) -> httpx2.AsyncClient:
        # Opening the connection is abandoned first, while it is sure that nothing was sent.
        timeout = httpx2.Timeout(seconds, connect=_OPENING * seconds)
        return httpx2.AsyncClient(follow_redirects=False, timeout=timeout, trust_env=False)

    def _request(self, call: ActionCall) -> dict[str, Any]:
        method = str(call.parameters["method"]).upper()
        if method not in METHODS:
            raise _RefusedError(f"the method {method!r} is not one of {', '.join(sorted(METHODS))}")
        url = address_of(call.spec, str(call.parameters["endpoint"]))
        headers = {"Idempotency-Key": call.key, "Accept": "application/json"}
        if name := call.spec.api_key_env:
            if not (secret := self._environment.get(name)):
                raise _RefusedError(f"the environment variable {name} is not set: set it")
            headers["Authorization"] = f"Bearer {secret}"
        request: dict[str, Any] = {"method": method, "url": url, "headers": headers}
        params = call.parameters.get("params")
        if params and method in _IN_ADDRESS:
            fields = cast("Mapping[str, JsonValue]", params)
            # Given apart, they would take the place of the query that the endpoint has.
            query = urlencode({name: text_or_json(value) for name, value in fields.items()})
            request["url"] += f"{'&' if '?' in url else '?'}{query}"
        elif method not in _IN_ADDRESS:
            request["json"] = params or {}
        return request


def address_of(spec: JobSpec, endpoint: str) -> str:
    """The whole address of an endpoint, which must be below one of those that a spec names."""
    bases = [base.rstrip("/") for base in spec.base_urls]
    if not bases:
        raise _RefusedError("no API can be called: add its address to base_urls of the job")
    url = endpoint if "://" in endpoint else f"{bases[0]}/{endpoint.lstrip('/')}"
    path = url.partition("://")[2].partition("?")[0]
    # A server may take an escaped dot or slash for the sign itself.
    if "#" in url or "\\" in url or {".", ".."} & {*unquote(unquote(path)).split("/")}:
        raise _RefusedError(f"the address {endpoint!r} has a '#', a backslash or '..'")
    if not any(url == base or url.startswith((f"{base}/", f"{base}?")) for base in bases):
        raise _RefusedError(f"the address {endpoint!r} is not below any of {', '.join(bases)}")
    return url


def _read(response: httpx2.Response, call: ActionCall) -> Outcome:
    status = response.status_code
    if response.is_success:
        try:
            return Outcome(success=True, result=_json(response))
        except (ValueError, RecursionError):
            return unanswered(
                call,
                f"the API answered {status} with something that is not JSON",
                is_transient=True,
            )
    if response.is_redirect:
        # Many APIs answer so what they have done.
        return unanswered(call, f"the API redirects ({status}), which is not followed")
    reply = without_secrets(" ".join(response.text.split()))[:_LONGEST_ERROR]
    problem = f"the API answered {status}: {reply}" if reply else f"the API answered {status}"
    if response.is_server_error:
        return unanswered(call, problem, is_transient=True, status=status)
    return not_done(call, problem, is_transient=status in _PASSING, status=status)


def _json(response: httpx2.Response) -> JsonValue:
    return as_json(json.loads(response.content)) if response.content.strip() else None
