"""A specialist that is a plain function."""

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

from pydantic_core import InitErrorDetails

from replan.base.declared.part import rule_error
from replan.team.chats import Chats
from replan.team.fields.code import StepFunction
from replan.team.kinds.member import Giving

if TYPE_CHECKING:
    from replan.ports.specialist_port import SpecialistPort


class Function(Giving):
    """A specialist that is a function.

    Attributes:
        run: A function, sync or async, of the ExecutionContext. It returns text, a message, a
            SpecialistResult, or, with an output_type, a value of this type.
    """

    marks: ClassVar[tuple[str, ...]] = ("run",)

    run: StepFunction | None = None

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """What it says that it returns can be of its output type."""
        work, wanted = fields.get("run"), fields.get("output_type")
        if callable(work) and (reason := _why_not_callable(work)):
            fix = "Give it one parameter for the ExecutionContext: def work(context): ..."
            yield rule_error(("run",), work, "no_context", reason, fix)
        # In a file, both are names.
        if callable(work) and wanted is not None:
            from replan.team.fields.returned_types import (
                cannot_be,
                returned_type,
            )

            returned = returned_type(work)
            if cannot_be(returned, wanted):
                reason = (
                    f"It returns {_name_of(returned)}, and its output_type is {_name_of(wanted)}."
                )
                fix = "Return a value of the output_type, JSON as a text, or a SpecialistResult."
                yield rule_error(("run",), work, "wrong_return", reason, fix)
        yield from super().broken_rules(fields)

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build the specialist that calls the function."""
        from replan.specialists.effects import effects_of_work
        from replan.specialists.function import FunctionSpecialist

        work = cast("StepFunction", self.run)
        return FunctionSpecialist(self.card_with(effects_of_work(work)), work, self.shape)


def _why_not_callable(work: Callable[..., Any]) -> str:
    """Why a step could not call a function, or an empty text."""
    from replan.base.user_code import KEY

    try:
        parameters = signature(work).parameters.values()
    except (ValueError, TypeError):
        return ""  # a function in C does not say what it takes
    if not any(each.kind in _POSITIONAL for each in parameters):
        return "It takes no context."
    needed = [each for each in parameters if each.default is Parameter.empty and each.name != KEY]
    # A second one takes the configuration.
    unknown = [each.name for each in needed if each.kind in _ONE_BY_ONE][2:]
    unknown += [each.name for each in needed if each.kind is Parameter.KEYWORD_ONLY]
    return f"It needs {', '.join(unknown)}, which no step gives." if unknown else ""


_ONE_BY_ONE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_POSITIONAL = (*_ONE_BY_ONE, Parameter.VAR_POSITIONAL)


def _name_of(hint: object) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else str(hint)
