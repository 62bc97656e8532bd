"""Errors that a server tells in the body of a reply whose status says that all is well."""

import json
from http import HTTPStatus
from typing import cast

_STATUS_OF_KIND = {
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "insufficient_quota": HTTPStatus.PAYMENT_REQUIRED,
    "permission_error": HTTPStatus.FORBIDDEN,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "overloaded_error": HTTPStatus.SERVICE_UNAVAILABLE,
}
_PLACES = ("code", "status", "status_code", "type")


def told_status(body: bytes) -> int | None:
    """Give the HTTP status that a body of a chat completion stands for; none if it is a reply.

    What is JSON and neither a reply nor an error that says which one is a server that is not well.
    """
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        # LangChain tells of what is no JSON, and shows it.
        return None
    whole = _fields(said)
    if _is_reply(whole):
        return None
    places = (_fields(whole.get("error")), whole)
    told = (_status(place.get(name)) for place in places for name in _PLACES)
    return next((status for status in told if status), HTTPStatus.BAD_GATEWAY)


def _is_reply(said: dict[str, object]) -> bool:
    choices = said.get("choices")
    first = cast("list[object]", choices)[:1] if isinstance(choices, list) else []
    return any(_fields(_fields(choice).get("message")) for choice in first)


def _fields(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _status(value: object) -> int | None:
    if isinstance(value, str):
        number = int(value) if value.isdecimal() else _STATUS_OF_KIND.get(value, 0)
    else:
        number = value if isinstance(value, int) else 0
    return number if HTTPStatus.BAD_REQUEST <= number < 600 else None  # noqa: PLR2004
