"""A specialist that is a member of the built-in local team, which needs no model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field

from replan.team.chats import Chats
from replan.team.fields import LocalMember
from replan.team.kinds.member import Member
from replan.team.surroundings import Surroundings

if TYPE_CHECKING:
    from replan.ports.specialist import SpecialistPort


class Local(Member):
    """A member of the local team; it brings its name, its use and its effects.

    Attributes:
        local: A member of the built-in local team, which needs no model.
    """

    marks: ClassVar[tuple[str, ...]] = ("local",)

    local: LocalMember | None = Field(
        default=None, examples=["data_analyst", "librarian", "calculator", "writer"]
    )

    @classmethod
    def completed(cls, given: Mapping[str, Any], around: Surroundings | None) -> Mapping[str, Any]:
        """Take from its card what is left out."""
        member = given.get("local")
        known = around.member(member) if around and isinstance(member, str) else member
        card = getattr(known, "card", None)
        if member is not None:
            # What an unknown member would bring is not missing.
            brought = {"name": "unknown", "intended_use": "unknown"}
            if card is not None:
                names = ("name", "intended_use", "capabilities", "effects")
                brought = {name: getattr(card, name) for name in names}
            given = {**brought, **given}
        return super().completed(given, around)

    def built(self, place: str, chats: Chats) -> "SpecialistPort":
        """Build what lets the member do the step."""
        from replan.specialists.effects import effects_of_work
        from replan.specialists.function import FunctionSpecialist

        work = cast("SpecialistPort", self.local).run
        return FunctionSpecialist(self.card_with(effects_of_work(work)), work)
