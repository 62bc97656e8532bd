"""Every error that Replan raises on purpose, each with the problem and its fix in the message.

```
ReplanError
├── UsageError                   the caller's to fix (exit code 2)
│   ├── ConfigurationError       a team, a host, a limit or a setting is wrong
│   │   ├── TeamError            a team has mistakes; all of them, by their fields
│   │   └── UnpricedModelError   money is bound, and a model has no price
│   ├── InputError               what was handed to a run is wrong
│   ├── ThreadBusyError          another run works on the thread
│   ├── QuestionError            a person is asked where nobody can be, or too much
│   ├── PlanDocumentError        a plan document has mistakes; all of them, with places
│   └── TeamFileError            a team file has mistakes; all of them, with places
├── PlanError                    the plan algebra refuses
│   ├── UnknownStepError         no step has this id
│   └── PlanChangeError          a change of the plan is refused, with machine-readable reasons
├── StorageError                 what is recorded of runs cannot be read or written
│   └── ThreadLostError          another run has taken the thread meanwhile
├── RetrievalError               knowledge could not be searched
├── ModelCallError               a model could not be reached or refused the call
├── ReplyTooLongError            a model's reply does not end
├── LimitReachedError            a limit of the run leaves no room for another call
└── InDoubtError                 nobody knows whether something that must not be done twice was done
```

`ReplanError` subclasses nothing but `Exception`; where a caller would already catch a builtin
(`ValueError`, `LookupError`), the class is that builtin too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replan.secrets.masking import without_secrets


class ReplanError(Exception):
    """The root of all errors of this package; no secret that is known stands in a message."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class UsageError(ReplanError, ValueError):
    """Something that the caller wrote is wrong; nothing was started."""


class ConfigurationError(UsageError):
    """A field of the configuration cannot be used.

    Attributes:
        field: The path of the field, for example `specialists[1].name`.
        value: What stood there.
        problem: What is wrong with it.
        fix: What to write instead.
        code: A stable machine-readable name of the kind of mistake.
    """

    def __init__(
        self, field: str, value: object, problem: str, fix: str, code: str = "bad_value"
    ) -> None:
        self.code = code
        self.field = field
        self.value = value
        self.problem = problem
        self.fix = fix
        super().__init__(f"{field}: {problem} (got {value!r}). {fix}")


class TeamError(ConfigurationError):
    """A team cannot be used; all its mistakes are told at once.

    Its field, value, problem and fix are those of the first one.

    Attributes:
        mistakes: Every mistake, in the order of the team.
    """

    def __init__(self, mistakes: Sequence[ConfigurationError]) -> None:
        self.mistakes = tuple(mistakes)
        first, *others = self.mistakes
        super().__init__(first.field, first.value, first.problem, first.fix, first.code)
        if others:
            head = f"{len(self.mistakes)} mistakes in the team:"
            self.args = ("\n".join([head, *(f"  {each}" for each in self.mistakes)]),)


class UnpricedModelError(ConfigurationError):
    """Money is bound, and a model has no price, so none of its calls is made."""

    def __init__(self, field: str, model: str) -> None:
        fix = f"Give it one: prices={{{model!r}: Price(input=..., output=...)}}."
        super().__init__(field, model, "this model has no price, but max_cost is set", fix)


class InputError(UsageError):
    """The input of a run cannot be used."""


class ThreadBusyError(UsageError):
    """Another run works on the thread now, in this process or in another one.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"Another run works on the thread '{thread_id}' now. Wait for its end, or stop it."
        )


class QuestionError(UsageError):
    """A question cannot be asked: not from here, not an empty one, or none any more."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake of a document: where it is, what is wrong, how to fix it.

    Lines and columns count from 1. `code` is a stable machine-readable name of the kind of mistake.
    """

    line: int
    column: int
    code: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason} {self.fix}"


class PlanDocumentError(UsageError):
    """A plan document cannot be read; all its mistakes are told at once.

    Attributes:
        mistakes: Every mistake, in the order of the document.
    """

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        count = len(self.mistakes)
        head = "1 mistake in the plan" if count == 1 else f"{count} mistakes in the plan"
        super().__init__("\n".join([f"{head}:", *(f"  {mistake}" for mistake in self.mistakes)]))


@dataclass(frozen=True, kw_only=True)
class FieldMistake(Mistake):
    """A mistake in a field of a team file.

    `field` is its path, such as `specialists[1].name`; `value` is what stands there, as text, short
    and without secrets. Both are empty where the file has no such thing.
    """

    field: str = ""
    value: str = ""

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        got = f" Got {self.value}." if self.value else ""
        return f"{field}{self.reason}{got} {self.fix}"


class TeamFileError(UsageError):
    """A team file cannot be used; all its mistakes are told at once.

    Attributes:
        path: The file.
        mistakes: Every mistake, in the order of the file.
    """

    def __init__(self, path: Path, mistakes: Sequence[FieldMistake]) -> None:
        self.path = path
        self.mistakes = tuple(mistakes)
        count = len(self.mistakes)
        head = f"{'1 mistake' if count == 1 else f'{count} mistakes'} in the team file"
        lines = [f"  {path}:{each.line}:{each.column}: {each}" for each in self.mistakes]
        super().__init__("\n".join([f"{head}:", *lines]))


class PlanError(ReplanError, ValueError):
    """The plan algebra cannot do what was asked."""


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
    `duplicate_step`, `unknown_specialist`, `nobody_named`, `not_allowed`, `leans_on_refused`);
    `step_id` names the step, if any.
    """

    code: str
    step_id: int | None
    reason: str

    def __str__(self) -> str:
        return f"[{self.code}] {self.reason}"


class PlanChangeError(PlanError):
    """One or more changes of a plan are refused; the plan is as it was.

    Attributes:
        refusals: A reason for each refused change.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))


class StorageError(ReplanError):
    """What is recorded of runs cannot be read or written.

    Attributes:
        where: The file or the database, without user name and password.
        problem: What is wrong, and what of the records is safe.
        fix: What to do, and how to go on.
    """

    def __init__(self, where: str, problem: str, fix: str) -> None:
        self.where = where
        self.problem = problem
        self.fix = fix
        super().__init__(f"The storage {where} cannot be used: {problem} {fix}")


class ThreadLostError(StorageError):
    """The thread is not this run's any more: another run took it meanwhile, or it was removed.

    The run was stopped. Nothing that it did since stands in the storage.

    Attributes:
        thread_id: The thread.
    """

    def __init__(self, where: str, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            where,
            f"This run was cut off from the thread '{thread_id}', and another one has taken it, or "
            "it was removed. So this run was stopped; what it recorded before stays recorded.",
            "Look at the thread: the run that took it goes on.",
        )

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}"


class RetrievalError(ReplanError):
    """Knowledge could not be searched; the message has the problem and the fix."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}. {fix}")


class ModelCallError(ReplanError):
    """A model could not be reached, refused the call, or broke off.

    The message names the kind of failure, never the address's credentials nor the request.
    """

    def __init__(self, role: str, problem: str) -> None:
        self.role = role
        end = "" if problem.endswith((".", "!", "?")) else "."
        super().__init__(
            f"The model for '{role}' did not answer: {problem}{end} "
            "Nothing of this call was kept; finished steps stay finished. "
            "Check the model's name, its base URL and its key, then run again."
        )


class ReplyTooLongError(ReplanError):
    """A model's reply is longer than any answer is; the rest of it was not read."""

    def __init__(self, longest: int, unit: str = "characters") -> None:
        super().__init__(f"the reply of the model is longer than {longest:,} {unit}")


class LimitReachedError(ReplanError):
    """A limit is reached; what would have gone past it was not started.

    Attributes:
        limit: The limit's name.
        value: Its value.
        scope: Whose it is: `run`, `specialist/<name>` or `step/<id>`.
        is_overcome: Whether less was asked for then, and nothing is missing for it.
    """

    is_overcome = False

    def __init__(self, limit: str, value: float, scope: str = "run") -> None:
        self.limit = limit
        self.value = value
        self.scope = scope
        whose = "" if scope == "run" else f" of {scope.replace('/', ' ')}"
        number = f"{value:.0f}" if value == int(value) else f"{value:g}"
        super().__init__(f"The limit {limit}={number}{whose} is reached.")


class InDoubtError(ReplanError):
    """Something was cut off, or done before, that must not be done twice: it is not done again."""

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
            f"was done in try {attempt}; it was opened again, or what it is given has changed, and "
            "it is not done once more unasked. Look at what it did"
            if was_done
            else f"was cut off in try {attempt}{cause}, so nobody knows whether it took effect, "
            "and it is not done again. Look at what it would have changed"
        )
        declare = (
            f" If its work may be repeated, declare that in the team: effects='pure' for "
            f"@{undeclared}, or 'keyed'."
            if undeclared
            else ""
        )
        super().__init__(f"{what} {problem}; then do it by hand, or in a new step.{declare}")
