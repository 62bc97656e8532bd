"""Errors as answers: problem details (RFC 9457) with the field, the value and the fix."""

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus

from starlette.responses import Response

from replan.base import errors
from replan.server.bodies import ApiModel

PROBLEM = "application/problem+json"

_PLAN = "plan"
"""The field of a request whose document has mistakes."""

_KINDS = (
    (errors.ThreadBusyError, 409, "busy", 1),
    (errors.SessionBusyError, 409, "busy", 1),
    (errors.SessionConflictError, 409, "conflict", None),
    (errors.PlanConflictError, 409, "conflict", None),
    (errors.UsageError, 422, "bad_input", None),
    (errors.StorageError, 503, "storage", 5),
)
"""By the kind of an error: the status, the code, and the seconds until it may pass."""


class Problem(ApiModel):
    """Why a request was refused, or failed: problem details as of RFC 9457.

    Attributes:
        type: Always `about:blank`; `code` says what it is.
        title: The phrase of the status.
        status: The status of the answer.
        detail: What is wrong, and what to do.
        code: A stable name of the kind of problem.
        mistakes: Every mistake of the request; empty if it is about no field.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    mistakes: tuple[errors.Mistake, ...] = ()


class RefusedError(errors.ReplanError):
    """A request that is answered with a problem; nothing was done.

    Attributes:
        problem: The answer.
        retry_after: Seconds after which the same request may succeed; None if it will not.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        mistakes: Sequence[errors.Mistake] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.problem = Problem(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=str(self),
            code=code,
            mistakes=tuple(mistakes),
        )

    @property
    def explained(self) -> str:
        """What is wrong, and every fix, for a protocol that has no place for mistakes."""
        fixes = (mistake.fix for mistake in self.problem.mistakes)
        return " ".join(filter(None, [self.problem.detail, *fixes]))


def bad_field(field: str, value: object, reason: str, fix: str) -> RefusedError:
    """Refuse one field of a request."""
    return bad_request([errors.mistake(field, value, reason, fix)])


def bad_request(mistakes: Sequence[errors.Mistake]) -> RefusedError:
    """Refuse a request for its mistakes."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    detail = "; ".join(_field_and_reason(mistake) for mistake in mistakes[:3])
    return RefusedError(422, "bad_request", f"{count} in the request: {detail}.", mistakes)


def _field_and_reason(mistake: errors.Mistake) -> str:
    return f"{mistake.field or 'the body'}: {mistake.phrase}"


def as_refusal(error: errors.ReplanError) -> RefusedError:
    """An error of the library as a refusal."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, errors.PlanDocumentError | errors.TeamFileError):
        mistakes = [replace(mistake, field=mistake.field or _PLAN) for mistake in error.mistakes]
        return RefusedError(422, "bad_document", str(error), mistakes)
    if isinstance(error, errors.ConfigurationError):
        return bad_request(error.mistakes)
    for kind, status, code, seconds in _KINDS:
        if isinstance(error, kind):
            return RefusedError(status, code, str(error), retry_after=seconds)
    return RefusedError(500, "failed", str(error))


def retry_headers(refusal: RefusedError) -> dict[str, str]:
    """The header that says when the same request may succeed."""
    return {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}


def problem_response(refusal: RefusedError) -> Response:
    """A refusal as a problem."""
    problem, headers = refusal.problem, retry_headers(refusal)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="replan"'
    return Response(problem.model_dump_json(), problem.status, headers, media_type=PROBLEM)
