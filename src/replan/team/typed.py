"""What gives something that may be of a type."""

from typing import TYPE_CHECKING

from replan.declared.part import Part
from replan.team.fields.code import OutputType

if TYPE_CHECKING:
    from replan.replies.shape import Shape


class Typed(Part):
    """The host or a specialist, whose answers or results have a type.

    Attributes:
        output_type: The type that they are of, if they are of one.
    """

    output_type: OutputType | None = None

    @property
    def shape(self) -> "Shape | None":
        """The type as what it is asked for and read with."""
        from replan.replies.shape import Shape  # noqa: PLC0415 - a team is light

        return None if self.output_type is None else Shape(self.output_type)
