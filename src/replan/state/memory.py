"""What models see of a conversation, as it is asked for, and the summary that outlives runs."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, cast

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from replan.errors import Mistake
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, TaskPlan
from replan.values import Asked, Value, described

Mode = Literal["full", "window", "summary"]
"""All that was said, its newest messages, or a summary and what that does not cover."""

_PREFIX = "memory_"


class MemoryOptions(Asked):
    """What models see of what was said before; a field that is left out is as further out.

    From the outermost level: window and the numbers below, the Team, its Host or a Specialist, the
    yaml block of a step (with memory_ before each name), RunSettings.

    Attributes:
        mode: window shows the newest messages, summary a summary and every message that it does
            not cover, full all messages; window where nobody says.
        history_limit: Messages of a window, 10 where nobody says; with 0 all of them. In mode
            summary those that a new summary leaves as they are.
        summary_enabled: Whether summaries are written, in mode summary; they are where nobody says.
        summary_trigger_messages: So many new messages make a new summary due; 30 where nobody says.
        summary_max_tokens: The length of a summary at most; 512 where nobody says.
        summary_model_id: The name of the model that writes summaries; else the host's model does.
    """

    model_config = ConfigDict(json_schema_extra=described)

    mode: Mode | None = None
    history_limit: int | None = None
    summary_enabled: bool | None = None
    summary_trigger_messages: int | None = Field(default=None, ge=1)
    summary_max_tokens: int | None = Field(default=None, ge=1)
    summary_model_id: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _without_prefix(cls, given: Any) -> Any:
        """Take the names that the options have in a step, too."""
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        return {str(name).removeprefix(_PREFIX): value for name, value in fields.items()}

    @property
    def said(self) -> dict[str, Any]:
        """The fields that are not left out."""
        return {name: value for name, value in self if value is not None}


BUILT_IN = MemoryOptions(
    mode="window", history_limit=10, summary_trigger_messages=30, summary_max_tokens=512
)
"""What holds where nobody says anything."""


class Summary(Value):
    """What stands for the beginning of a conversation.

    Attributes:
        text: What a model wrote of it.
        covered: The messages that it covers, without the caller's instructions at the beginning.
        last_covered_id: The id of the last of them.
    """

    text: str
    covered: int
    last_covered_id: str


def joined(*levels: MemoryOptions) -> MemoryOptions:
    """The options of several levels, the innermost last."""
    return MemoryOptions(**{name: value for each in levels for name, value in each.said.items()})


def step_options(parameters: Mapping[str, JsonValue], *, by_model: bool) -> MemoryOptions:
    """The options that stand among a step's parameters; of what a model wrote, the mode alone."""
    known = {f"{_PREFIX}mode"} if by_model else _NAMES
    given = {name: parameters[name] for name in known & parameters.keys()}
    try:
        return MemoryOptions.model_validate(given)
    except ValidationError:
        # A person's plan was refused for it; a model's word is data.
        return MemoryOptions()


def without_options(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters that a specialist is shown."""
    if _NAMES.isdisjoint(parameters):
        return parameters
    return {name: value for name, value in parameters.items() if name not in _NAMES}


def option_mistakes(document: PlanDocument, before: TaskPlan | None = None) -> list[Mistake]:
    """What is wrong with the options in a person's plan, or in a change of the one `before`."""
    old = (before or TaskPlan()).by_id
    fresh = [
        step
        for step in document.plan.steps
        if step.id not in old or step.parameters != old[step.id].parameters
    ]
    return [mistake for step in fresh for mistake in _mistakes_of(step, document)]


def _mistakes_of(step: PlanStep, document: PlanDocument) -> Iterator[Mistake]:
    given = {n: value for n, value in step.parameters.items() if n.startswith(_PREFIX)}
    for name in given.keys() - _NAMES:
        near = get_close_matches(name, _NAMES, 1)
        fix = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(sorted(_NAMES))}."
        reason = f"Step {step.id} has {name}, and there is no such option of its memory."
        yield _mistake(step, name, document, "unknown_option", reason, fix)
    try:
        MemoryOptions.model_validate({n: value for n, value in given.items() if n in _NAMES})
    except ValidationError as error:
        for each in error.errors(include_url=False):
            name = f"{_PREFIX}{each['loc'][0]}"
            reason = f"Step {step.id} has {name}: {each['input']!r}, which cannot be."
            fix = f"It {each['msg'].removeprefix('Input ')}."
            yield _mistake(step, name, document, "bad_option", reason, fix)


def _mistake(
    step: PlanStep, name: str, document: PlanDocument, code: str, reason: str, fix: str
) -> Mistake:
    begins = document.line_of(step.id) or 1
    lines = document.text.splitlines()[begins - 1 :]
    key = re.compile(rf"\s*[\"']?{re.escape(name)}\b")
    places = ((at, key.match(line)) for at, line in enumerate(lines))
    at, column = next(((at, it.end() - len(name) + 1) for at, it in places if it), (0, 1))
    return Mistake(line=begins + at, column=column, code=code, reason=reason, fix=fix)


_NAMES = frozenset(f"{_PREFIX}{name}" for name in MemoryOptions.model_fields)
