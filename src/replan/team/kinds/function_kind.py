"""A specialist that is a plain function."""

from typing import TYPE_CHECKING, ClassVar, cast

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

    def built(self, place: str, chats: Chats) -> "SpecialistPort":
        """Build the specialist that calls the function."""
        from replan.specialists.effects import effects_of_work
        from replan.specialists.function import FunctionSpecialist

        work = cast("StepFunction", self.run)
        return FunctionSpecialist(self.card_with(effects_of_work(work)), work, self.shape)
