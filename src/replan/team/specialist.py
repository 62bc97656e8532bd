"""A specialist: its fields decide its kind."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import InitErrorDetails

from replan.base.declared.part import rule_error
from replan.base.values import described
from replan.team.chats import Chats
from replan.team.kinds.chat_kind import Chat
from replan.team.kinds.function_kind import Function
from replan.team.kinds.job_kind import JobMember
from replan.team.kinds.member import Member
from replan.team.kinds.pipeline_kind import Pipeline
from replan.team.kinds.ready import Ready
from replan.team.kinds.runnable_kind import Runnable

if TYPE_CHECKING:
    from replan.ports.specialist_port import SpecialistPort


def _one_kind(schema: dict[str, Any], kind: type[BaseModel]) -> None:
    described(schema, kind)
    marks = [[{"required": [mark]} for mark in kind.marks] for kind in Specialist.kinds()]
    schema["allOf"] = [
        {"anyOf": [{"required": ["use"]}, {"required": schema.pop("required")}]},
        {"oneOf": [one[0] if len(one) == 1 else {"anyOf": one} for one in marks]},
    ]


class Specialist(Chat, Runnable, Function, JobMember, Pipeline, Ready):
    """A member: a chat model, a runnable, a function, a job, a pipeline, or a ready one.

    It has the fields of every member and the fields of its kind. The kind is decided by
    `chat_model`, `invokable` (or `streamable`), `run`, `job`, `pipeline` or `use`.
    """

    model_config = ConfigDict(json_schema_extra=_one_kind)

    @classmethod
    def kinds(cls) -> tuple[type[Member], ...]:
        """All kinds."""
        return tuple(kind for kind in cls.__mro__ if vars(kind).get("marks"))

    @property
    def kind(self) -> type[Member]:
        """Its kind."""
        return next(kind for kind in self.kinds() if _is_of_kind(kind, vars(self)))

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build it by its kind."""
        return self.kind.built(self, location, chats)

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """It must be of one kind, and have no field that this kind would silently ignore."""
        # A misspelt field may be the one that seems to be missing.
        if fields.keys() <= cls.model_fields.keys():
            yield from cls._other_kinds(fields)
        yield from super().broken_rules(fields)

    @classmethod
    def _other_kinds(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Report that it is of no kind, and fields of other kinds than its own."""
        kinds = [kind for kind in cls.kinds() if _is_of_kind(kind, fields)]
        marks = {mark for kind in cls.kinds() for mark in kind.marks}
        fix = f"Give exactly one of {', '.join(' or '.join(kind.marks) for kind in cls.kinds())}."
        if not kinds:
            yield rule_error((), fields.get("name"), "no_way", "It has no way to work.", fix)
            return
        way = next(mark for mark in kinds[0].marks if mark in fields)
        for name in fields:
            if name in kinds[0].model_fields or fields[name] == cls.model_fields[name].default:
                continue
            if name in marks:
                reason = f"It already has {way} as its way to work."
                yield rule_error((name,), fields[name], "two_ways", reason, fix)
            else:
                reason = f"A specialist with {way} does not use this."
                yield rule_error((name,), fields[name], "unused_field", reason, "Leave it out.")


def _is_of_kind(kind: type[Member], fields: Mapping[str, Any]) -> bool:
    return any(fields.get(mark) is not None for mark in kind.marks)
