"""A specialist that is a ready one: an object with a card and a way to run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field

from replan.base.declared.part import Surroundings
from replan.team.chats import Chats
from replan.team.fields.code import ReadySpecialist, card_of
from replan.team.kinds.member import Member

if TYPE_CHECKING:
    from replan.ports.specialist_port import SpecialistPort

_BROUGHT = ("name", "intended_use", "capabilities", "effects")


class Ready(Member):
    """A ready-made specialist, which has its own name, use and effects.

    Attributes:
        use: A ready specialist: an object with a card and a way to run, in a file as module:name.
    """

    marks: ClassVar[tuple[str, ...]] = ("use",)

    use: ReadySpecialist | None = Field(
        default=None, examples=["replan_local:data_analyst", "replan_local:writer"]
    )

    @classmethod
    def completed(cls, fields: Mapping[str, Any], around: Surroundings | None) -> Mapping[str, Any]:
        """Take omitted fields from its card."""
        if fields.get("use") is not None or "local" in fields:
            # The fields of an unknown specialist do not count as missing.
            brought = {"name": "unknown", "intended_use": "unknown"}
            if (card := card_of(fields.get("use"), around)) is not None:
                brought = {name: getattr(card, name) for name in _BROUGHT}
            fields = {**brought, **fields}
        return super().completed(fields, around)

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build the specialist that lets it do the step."""
        from replan.specialists.effects import effects_of_work
        from replan.specialists.function import FunctionSpecialist

        work = cast("SpecialistPort", self.use).run
        return FunctionSpecialist(self.card_with(effects_of_work(work)), work)
