"""Every error that Replan raises on purpose. Each message has the problem and its fix.

```
ReplanError
├── UsageError                   the caller must fix something (exit code 2)
│   ├── ConfigurationError       a team, a host, a limit or a setting is wrong
│   │   ├── TeamError            a team has mistakes; lists all of them, by field
│   │   ├── SettingsError        the settings of a run have mistakes; lists all of them, by field
│   │   ├── ContextError         a session's context cannot be used; lists all its mistakes
│   │   ├── JobSpecError         a job spec has mistakes; lists all of them, by field
│   │   ├── JobError             a job from outside cannot be used; lists all its mistakes
│   │   └── UnpricedModelError   max_cost is set, and a model has no price
│   ├── InputError               the input of a run is wrong
│   │   ├── PlanDocumentError    a plan document has mistakes; lists all of them, with positions
│   │   └── PlanConflictError    a plan was edited that has another version by now
│   ├── ThreadBusyError          another run works on the thread
│   ├── SessionBusyError         another client takes a turn of the session
│   ├── SessionConflictError     the session has changed meanwhile; the turn can be repeated
│   ├── QuestionError            a question cannot be asked here, or no longer
│   └── DeclaredFileError        a file, such as one of schedules, has mistakes; lists all of them
│       ├── TeamFileError        a team file has mistakes; lists all of them, with positions
│       └── JobFileError         a job file has mistakes; lists all of them, with positions
├── PlanError                    the plan algebra refuses an operation
│   ├── UnknownStepError         no step has this id
│   └── PlanChangeError          a change of the plan is refused, with machine-readable reasons
├── StorageError                 the storage of runs cannot be read or written
│   └── ThreadLostError          another run has taken the thread
├── ThreadError                  a thread of a pipeline cannot be used or changed
│   ├── StaleThreadError         somebody else has stored the thread meanwhile
│   ├── SubThreadPathError       a path leads to no sub-thread
│   └── PhaseError               a phase of a pipeline cannot do its work
├── RetrievalError               knowledge could not be searched
├── FactError                    a fact cannot be remembered
├── ModelCallError               a model could not be reached or refused the call
├── ReplyTooLongError            a model's reply does not end
├── ToolServerError              a tool server cannot be used, or a call of its tools failed
│   └── ToolCallLostError        a call was sent, and nobody knows its outcome
├── StepElsewhereError           a step failed at the worker of a queue
├── LimitReachedError            a limit of the run leaves no room for another call
└── InDoubtError                 it is unknown whether work that must not happen twice took effect
```

`ReplanError` is a subclass of `Exception` only. A class that callers would catch as a builtin
(`ValueError`, `LookupError`) is a subclass of that builtin, too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any, Self

from replan.base.secrets.masking import MASK, holds_key, masked_beginning, without_secrets

_PUBLIC = "replan.errors"
_LONGEST_VALUE = 75  # with quotes and an ellipsis, 80
_MOST_LISTED = 20
_SEARCHED = 2_000


class ReplanError(Exception):
    """The root of all errors of this package. Messages contain no known secret."""

    __module__ = _PUBLIC

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = _PUBLIC  # where people import it from, and a traceback says so

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(arg) if isinstance(arg, str) else arg for arg in args))


def _described(schema: dict[str, Any], kind: type[Any]) -> None:
    from replan.base.values import described  # noqa: PLC0415 - errors alone need no pydantic

    described(schema, kind)


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake in Python, a file, a document or a request; `mistake` makes those of fields.

    Attributes:
        field: The path of the field, such as `specialists[1].name`; empty if it is in no field.
        value: The beginning of its value as text, without secrets; empty if nothing can be shown.
        reason: What is wrong.
        fix: What to write instead.
        code: A stable machine-readable name of the kind of mistake.
        line: The line in a document, from 1; 0 if there is no document.
        column: The column in a document, from 1; 0 if there is no document.
    """

    field: str = ""
    value: str = ""
    reason: str
    fix: str
    code: str = "bad_value"
    line: int = 0
    column: int = 0

    @property
    def text(self) -> str:
        """The mistake for people, without its line."""
        if not self.field:
            return f"{self.reason} {self.fix}"
        got = f" (got {self.value})" if self.value else ""
        return f"{self.field}: {self.phrase}{got}. {self.fix}"

    @property
    def phrase(self) -> str:
        """The reason as a part of a sentence."""
        reason, first = self.reason.removesuffix("."), self.reason.partition(" ")[0]
        return reason[:1].lower() + reason[1:] if first.istitle() else reason

    def __str__(self) -> str:
        is_placed = self.line and not self.field
        return f"line {self.line}, column {self.column}: {self.text}" if is_placed else self.text

    # pydantic reads it where a mistake is a part of an answer.
    __pydantic_config__ = {"json_schema_extra": _described}  # noqa: RUF012


def mistake(  # noqa: PLR0913, PLR0917 - what is known of a mistake
    field: str,
    value: object,
    reason: str,
    fix: str,
    code: str = "bad_value",
    line: int = 0,
    column: int = 0,
) -> Mistake:
    """Make the mistake of a field, from its value and from what is wrong with it."""
    if reason.partition(" ")[0].isalpha():
        reason = reason[:1].upper() + reason[1:]
    return Mistake(
        field=without_secrets(field),
        value=shown(value),
        reason=without_secrets(reason.rstrip(".") + "."),
        fix=without_secrets(fix),
        code=code,
        line=line,
        column=column,
    )


def shown(value: object) -> str:
    """Write a single value for people: short, and without secrets; empty for None and for many."""
    if value is None or isinstance(value, Mapping | list | tuple | set):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        is_secret = value == MASK or holds_key(value[:_SEARCHED])
        return MASK if is_secret else repr(masked_beginning(value, _LONGEST_VALUE))
    if isinstance(value, FunctionType):
        return value.__name__
    try:
        return masked_beginning(repr(value), _LONGEST_VALUE)
    except Exception:  # noqa: BLE001 - a foreign class, or a number of too many digits
        return type(value).__name__


def listed(mistakes: Sequence[Mistake], whole: str, line: Callable[[Mistake], str] = str) -> str:
    """Write mistakes for people: a screen of them at most."""
    count = len(mistakes)
    head = f"{'1 mistake' if count == 1 else f'{count} mistakes'} in the {whole}:"
    lines = [head, *(f"  {line(each)}" for each in mistakes[:_MOST_LISTED])]
    if count > _MOST_LISTED:
        lines.append(f"  and {count - _MOST_LISTED} more")
    return "\n".join(lines)


class UsageError(ReplanError, ValueError):
    """The caller's input or configuration is wrong. Nothing was started."""


class ConfigurationError(UsageError):
    """A field of the configuration cannot be used.

    Attributes:
        mistakes: Every mistake; `field`, `value`, `reason`, `fix` and `code` are of the first.
    """

    whole = "configuration"

    def __init__(
        self, field: str, value: object, reason: str, fix: str, code: str = "bad_value"
    ) -> None:
        self._tell([mistake(field, value, reason, fix, code)])

    @classmethod
    def of(cls, mistakes: Sequence[Mistake]) -> Self:
        """Make the error of some mistakes."""
        error = cls.__new__(cls)
        error._tell(mistakes)  # noqa: SLF001 - it is of this class
        return error

    def at(self, field: str) -> "ConfigurationError":
        """Give the error of the same value at another path."""
        return ConfigurationError.of([replace(self.mistakes[0], field=field)])

    def _tell(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        first = self.mistakes[0]
        self.field, self.value, self.code = first.field, first.value, first.code
        self.reason, self.fix = first.reason, first.fix
        is_one = len(self.mistakes) == 1
        super().__init__(str(first) if is_one else listed(self.mistakes, self.whole))


class _ListedError(ConfigurationError):
    """Several fields cannot be used; the error is that of the first, its message has them all."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self._tell(mistakes)


class TeamError(_ListedError):
    """A team cannot be used. The message lists all its mistakes.

    `field`, `value`, `reason` and `fix` are those of the first mistake.

    Attributes:
        mistakes: Every mistake, in the order of the team.
    """

    whole = "team"


class SettingsError(_ListedError):
    """What a run asks for cannot be used, such as a field of `RunSettings` or `Limits`.

    `field`, `value`, `reason` and `fix` are those of the first mistake.

    Attributes:
        mistakes: Every mistake, in the order of the fields.
    """

    whole = "settings"


class ContextError(_ListedError):
    """A session's context, or an update of it, cannot be used. Nothing of it was used.

    `field`, `value`, `reason` and `fix` are those of the first mistake.

    Attributes:
        mistakes: Every mistake, in the order of the context.
    """

    whole = "context"


class JobSpecError(_ListedError):
    """A job spec cannot be used. The message lists all its mistakes.

    Attributes:
        mistakes: Every mistake, in the order of the spec.
    """

    whole = "job spec"


class JobError(_ListedError):
    """A job that came from outside is not valid. No part of it was used.

    Attributes:
        mistakes: Every mistake, in the order of the job.
    """

    whole = "job"


class UnpricedModelError(ConfigurationError):
    """`max_cost` is set and a model has no price, so the model is not called."""

    def __init__(self, field: str, model: str) -> None:
        of_file = f"prices: {{{model}: {{input: NUMBER, output: NUMBER}}}}"
        of_python = f"prices={{{model!r}: Price(input=..., output=...)}}"
        fix = f"Set its price: {of_python}; in a file {of_file}."
        super().__init__(field, model, "this model has no price, but max_cost is set", fix)


class InputError(UsageError):
    """The input of a run cannot be used."""


class PlanConflictError(InputError):
    """The plan of a run has another version than the one that an edit was made from.

    The plan is as it was before the edit.

    Attributes:
        expected: The version that the edit was made from.
        found: The version that the plan has now.
    """

    def __init__(self, expected: int, found: int) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"The edit was made from version {expected} of the plan, and the plan is at version "
            f"{found} now. Read the plan again, and repeat the edit in it."
        )


class ThreadBusyError(UsageError):
    """Another run works on the thread, in this process or in another process.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"Another run works on the thread '{thread_id}'. Wait until it ends, or stop it."
        )


class SessionBusyError(UsageError):
    """Another client takes a turn of the session. No model was called.

    Attributes:
        session_id: The session.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"Another client takes a turn of the session '{session_id}'. Wait until it has ended, "
            "and send the turn again."
        )


class SessionConflictError(UsageError):
    """The session has another version than when the turn began. Nothing of the turn was stored.

    Also: an exported session is brought in that is not newer than the stored one.

    Attributes:
        session_id: The session.
        expected: The version with which the turn began, or that of the exported session.
        found: The version that the session has now.
    """

    def __init__(
        self,
        session_id: str,
        expected: int,
        found: int,
        fix: str = "Load the session, and send the turn again.",
    ) -> None:
        self.session_id = session_id
        self.expected = expected
        self.found = found
        super().__init__(
            f"The session '{session_id}' is at version {found}, and this is from version "
            f"{expected}. {fix}"
        )


class QuestionError(UsageError):
    """A question cannot be asked: here, without a text, or after the last allowed one."""


class PlanDocumentError(InputError):
    """A plan document cannot be used. The message lists its mistakes, the first 20 at most.

    Attributes:
        mistakes: Every mistake, in the order of the document.
    """

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(listed(self.mistakes, "plan"))


class DeclaredFileError(UsageError):
    """A file that declares something cannot be used. The message lists 20 mistakes at most.

    Attributes:
        path: The file.
        mistakes: Every mistake, in the order of the file.
    """

    kind = "file"

    def __init__(self, path: Path, mistakes: Sequence[Mistake]) -> None:
        self.path = path
        self.mistakes = tuple(mistakes)

        def placed(each: Mistake) -> str:
            return f"{path}:{each.line}:{each.column}: {each.text}"

        super().__init__(listed(self.mistakes, self.kind, placed))


class TeamFileError(DeclaredFileError):
    """A team file cannot be used. The message lists all its mistakes.

    Attributes:
        path: The file.
        mistakes: Every mistake, in the order of the file.
    """

    kind = "team file"


class JobFileError(DeclaredFileError):
    """The file of a job spec cannot be used. The message lists all its mistakes.

    Attributes:
        path: The file.
        mistakes: Every mistake, in the order of the file.
    """

    kind = "job file"


class PlanError(ReplanError, ValueError):
    """The plan algebra refuses an operation."""


class UnknownStepError(PlanError, LookupError):
    """No step of the plan has this id."""

    def __init__(self, step_id: int, known: Iterable[int]) -> None:
        self.step_id = step_id
        self.known = tuple(known)
        names = ", ".join(str(step) for step in self.known) or "none, the plan is empty"
        super().__init__(f"No step {step_id} in this plan. Use one of: {names}.")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why one change of a plan is refused.

    `code` is machine-readable (`finished_step`, `unknown_step`, `unknown_dependency`, `cycle`,
    `duplicate_step`, `unknown_specialist`, `nobody_named`, `not_allowed`, `depends_on_refused`);
    `step_id` names the step, if any.
    """

    code: str
    step_id: int | None
    reason: str

    def __str__(self) -> str:
        return f"[{self.code}] {self.reason}"


class PlanChangeError(PlanError):
    """One or more changes of a plan are refused. The plan is unchanged.

    Attributes:
        refusals: A reason for each refused change.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))


class StorageError(ReplanError):
    """The storage of runs cannot be read or written.

    Attributes:
        where: The file or the database, without user name and password.
        problem: What is wrong, and which records are safe.
        fix: What to do, and how to continue.
    """

    def __init__(self, where: str, problem: str, fix: str) -> None:
        self.where = where
        self.problem = problem
        self.fix = fix
        super().__init__(f"The storage {where} cannot be used: {problem} {fix}")


class ThreadLostError(StorageError):
    """The run lost its thread: another run took it, or it was removed.

    The run was stopped. The storage has nothing that the run did after the loss.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, where: str, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            where,
            f"This run was cut off from the thread '{thread_id}', and another run has taken the "
            "thread, or it was removed. This run was stopped. Its earlier records are kept.",
            "Look at the thread: the run that took it continues.",
        )

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}"


class ThreadError(ReplanError):
    """A thread of a pipeline cannot be used or changed.

    Attributes:
        thread_id: The thread.
        problem: What is wrong.
        fix: What to do.
    """

    def __init__(self, thread_id: str, problem: str, fix: str) -> None:
        self.thread_id = thread_id
        self.problem = problem
        self.fix = fix
        super().__init__(f"Thread '{thread_id}': {problem}. {fix}")


class StaleThreadError(ThreadError):
    """Another writer has stored the thread since it was read. Nothing of this copy was written."""

    def __init__(self, thread_id: str) -> None:
        problem = "somebody else works on it, or has stored it since it was read"
        super().__init__(thread_id, problem, "Let one at a time work on it, and read it again.")


class SubThreadPathError(ThreadError):
    """A path leads to no sub-thread.

    Attributes:
        path: The path.
        part: The part of it that fails.
        reason: Why it fails.
    """

    def __init__(self, thread_id: str, path: str, part: str, problem: str) -> None:
        self.path = path
        self.part = part
        self.reason = problem
        fix = "Write a path such as messages.3.meta._thread."
        super().__init__(thread_id, f"the path '{path}' fails at '{part}': {problem}", fix)


class PhaseError(ThreadError):
    """A phase of a pipeline cannot do its work.

    Attributes:
        phase: The phase.
        specialist: The specialist whose pipeline it is; empty outside a step.
    """

    def __init__(
        self, thread_id: str, phase: str, problem: str, fix: str, specialist: str = ""
    ) -> None:
        self.phase = phase
        self.specialist = specialist
        super().__init__(thread_id, problem, fix)

    def __str__(self) -> str:
        # Whoever reads it knows phases, and no threads.
        who = f"@{self.specialist} in" if self.specialist else "In"
        return f"{who} the phase '{self.phase}': {self.problem}. {self.fix}".rstrip()


class RetrievalError(ReplanError):
    """Knowledge could not be searched; the message has the problem and the fix."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}. {fix}")


class FactError(ReplanError):
    """A fact cannot be remembered: the message says why."""


class ModelCallError(ReplanError):
    """A model could not be reached, refused the call, or was cut off.

    The message names the kind of failure. It contains neither credentials nor the request.
    """

    def __init__(self, role: str, problem: str) -> None:
        end = "" if problem.endswith((".", "!", "?")) else "."
        self.role = role
        self.problem = f"{problem}{end}"
        super().__init__(
            f"The model for '{role}' did not answer: {self.problem} "
            "Nothing of this call was kept. Finished steps stay finished. "
            "Check the model's name, its base URL and its key, then run again."
        )


class ReplyTooLongError(ReplanError):
    """A model's reply is too long. The rest of it was not read."""

    def __init__(self, longest: int, unit: str = "characters") -> None:
        super().__init__(f"the reply of the model is longer than {longest:,} {unit}")


class ToolServerError(ReplanError):
    """A tool server cannot be used, or a call of one of its tools failed.

    Attributes:
        server: The name of the server.
        problem: What is wrong.
    """

    def __init__(self, server: str, problem: str) -> None:
        self.server = server
        self.problem = problem
        super().__init__(f"tool server {server}: {problem}")


class ToolCallLostError(ToolServerError):
    """A tool call was sent, and its outcome is unknown."""


class LimitReachedError(ReplanError):
    """A limit is reached. The work that would have passed it was not started.

    Attributes:
        limit: The limit's name.
        value: Its value.
        scope: The owner of the limit: `run`, `specialist/<name>` or `step/<id>`.
        reason: The figures: what is spent, what is kept back, what the call may need.
        wants: What the refused call may need; 0 if no call was refused.
        kept: What is kept back for the answer.
        is_overcome: Whether a smaller request was made instead, so that nothing is missing.
    """

    is_overcome = False

    def __init__(
        self,
        limit: str,
        value: float,
        scope: str = "run",
        *,
        spent: float = 0,
        wants: float = 0,
        kept: float = 0,
    ) -> None:
        self.limit = limit
        self.value = value
        self.scope = scope
        self.wants = wants
        self.kept = kept
        back = f", {_figure(kept)} kept for the answer" if kept else ""
        needs = f"{_figure(spent)} spent{back}, and the next call may need {_figure(wants)}"
        self.reason = needs if wants else ""
        whose = "" if scope == "run" else f" of {scope.replace('/', ' ')}"
        super().__init__(f"The limit {limit}={_figure(value, 6)}{whose} is reached.")


def _figure(value: float, digits: int = 3) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.{digits}g}"


class StepElsewhereError(ReplanError):
    """A step that the workers of a queue did has failed there.

    Attributes:
        queue: The queue.
        is_transient: Whether another attempt can help.
        is_busy: Whether a server was too busy there, or not reached.
        is_cut_off: Whether it was stopped in the middle, so that its outcome is unknown.
    """

    def __init__(
        self, queue: str, reason: str, *, is_transient: bool, is_busy: bool, is_cut_off: bool
    ) -> None:
        self.queue = queue
        self.is_transient = is_transient
        self.is_busy = is_busy
        self.is_cut_off = is_cut_off
        super().__init__(f"At a worker of the queue '{queue}': {reason}")


class InDoubtError(ReplanError):
    """Work that must not happen twice was cut off or done before, and is not repeated."""

    def __init__(
        self,
        what: str,
        attempt: int,
        *,
        was_done: bool = False,
        why: str = "",
        undeclared: str = "",
    ) -> None:
        self.what = what
        self.attempt = attempt
        self.was_done = was_done
        cause = f" ({why})" if why else ""
        problem = (
            f"was done in attempt {attempt}. It was opened again, or its inputs have changed, and "
            "it is not repeated without asking. Look at what it did"
            if was_done
            else f"was cut off in attempt {attempt}{cause}. Nobody knows whether it took effect, "
            "and it is not repeated. Look at what it would have changed"
        )
        declare = (
            f" If its work may be repeated, declare that in the team: effects='pure' for "
            f"@{undeclared}, or 'keyed'."
            if undeclared
            else ""
        )
        super().__init__(f"{what} {problem}; then do it by hand, or in a new step.{declare}")
