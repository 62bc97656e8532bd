"""Errors as answers: problem details (RFC 9457) with the field, the value and the fix."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import cast

from pydantic import JsonValue

from replan import errors
from replan.secrets.masking import masked_beginning
from replan.values import Value

_LONGEST = 200
"""Characters of a value that an answer repeats."""

_KINDS = (
    (errors.ThreadBusyError, 409, "busy", 1),
    (errors.SessionBusyError, 409, "busy", 1),
    (errors.SessionConflictError, 409, "conflict", None),
    (errors.UsageError, 422, "bad_input", None),
    (errors.StorageError, 503, "storage", 5),
)
"""By the kind of an error: the status, the code, and the seconds until it may pass."""


class FieldProblem(Value):
    """One mistake of a request.

    Attributes:
        field: The path of the field, such as `settings.limits.max_rounds`; empty for the whole.
        value: The beginning of its value, as text.
        problem: What is wrong.
        fix: What to send instead.
        code: A stable name of the kind of mistake.
        line: The line in a document, from 1; None if there is none.
        column: The column in a document, from 1; None if there is none.
    """

    field: str = ""
    value: str = ""
    problem: str
    fix: str
    code: str = "bad_value"
    line: int | None = None
    column: int | None = None


class Problem(Value):
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
    mistakes: tuple[FieldProblem, ...] = ()


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
        mistakes: Sequence[FieldProblem] = (),
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


def bad_field(field: str, value: object, problem: str, fix: str) -> RefusedError:
    """Refuse one field of a request."""
    mistake = FieldProblem(field=field, value=value_text(value), problem=problem, fix=fix)
    return bad_request([mistake])


def bad_request(mistakes: Sequence[FieldProblem]) -> RefusedError:
    """Refuse a request for its mistakes."""
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    detail = "; ".join(f"{each.field}: {each.problem}" for each in mistakes[:3])
    return RefusedError(422, "bad_request", f"{count} in the request: {detail}.", mistakes)


def as_refusal(error: errors.ReplanError) -> RefusedError:
    """An error of the library as a refusal."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, errors.PlanDocumentError | errors.TeamFileError):
        return _document_refusal(error)
    if isinstance(error, errors.ConfigurationError):
        listed = isinstance(error, errors.TeamError | errors.ContextError)
        return bad_request(
            [field_problem(each) for each in (error.mistakes if listed else [error])]
        )
    for kind, status, code, seconds in _KINDS:
        if isinstance(error, kind):
            return RefusedError(status, code, str(error), retry_after=seconds)
    return RefusedError(500, "failed", str(error))


def value_text(value: object) -> str:
    """The beginning of a value, without secrets."""
    text = value if isinstance(value, str) else repr(cast("JsonValue", value))
    return masked_beginning(text, _LONGEST)


def field_problem(error: errors.ConfigurationError) -> FieldProblem:
    """The mistake of a field as an answer has it."""
    return FieldProblem(
        field=error.field,
        value="" if error.value is None else value_text(error.value),
        problem=error.problem,
        fix=error.fix,
        code=error.code,
    )


def _document_refusal(error: errors.PlanDocumentError | errors.TeamFileError) -> RefusedError:
    mistakes: Sequence[errors.Mistake] = error.mistakes
    listed = [
        FieldProblem(
            field=each.field if isinstance(each, errors.FieldMistake) else "plan",
            value=each.value if isinstance(each, errors.FieldMistake) else "",
            problem=each.reason,
            fix=each.fix,
            code=each.code,
            line=each.line,
            column=each.column,
        )
        for each in mistakes
    ]
    return RefusedError(422, "bad_document", str(error), listed)
