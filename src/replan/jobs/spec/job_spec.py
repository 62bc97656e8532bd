"""A job spec: its commands, the information that each needs, its rules and its actions."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints, ValidationError
from pydantic_core import InitErrorDetails

from replan.base.declared.mistakes import mistakes_in
from replan.base.declared.part import Effects, Part, Row
from replan.base.errors import JobSpecError
from replan.base.secrets.masking import MASK
from replan.jobs.sayings import Language
from replan.jobs.spec.action_spec import BUILT_IN, ActionSpec
from replan.jobs.spec.slot import Slot, SlotName, Texts, text_in, without_forms
from replan.jobs.spec.spec_rules import broken_rules_of

Address = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(?:/[^\s?#]*)?$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")]


# The keys of a file are texts, whatever they look like.
Status = Annotated[str, BeforeValidator(str), Field(pattern=r"^4\d\d$")]


class JobCommand(Part):
    """Something that a user can have done.

    Attributes:
        name: Small letters, digits and _, beginning with a letter.
        needs: The slots that it needs, in the order in which they are asked for.
        action: The type of action that does it.
        takes: Further slots, which it takes if they are given.
        label: Its name for the user: a text, or one for each language.
        words: Words by which it is recognised in a message.
        each: A needed slot of type list: the action is done once for each of its texts.
        parameters: The parameters of the action. '{slot}' in a text stands for the value of a
            slot. Without them the action gets the values of all its slots by name.
        effects: What a repetition changes outside, if this differs from what the action declares.
        confirm: Whether the user confirms all values before it is done. Not set, an unsafe action
            is confirmed, and so is one whose method is not GET.
        refusals: Which slot an API refuses with which status, such as {404: product}: its value is
            removed, and asked for again.
        done: What the user is told at the end: a text, or one for each language.
    """

    name: SlotName = Field(kw_only=False)
    needs: Row[str]
    action: str = Field(min_length=1)
    takes: Row[str] = ()
    label: Texts = Field(default_factory=dict[str, str])
    words: Row[str] = ()
    each: str | None = None
    parameters: Mapping[str, JsonValue] | None = None
    effects: Effects | None = None
    confirm: bool | None = None
    refusals: Mapping[Status, str] = Field(default_factory=dict[str, str])
    done: Texts = Field(default_factory=dict[str, str])

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that it uses, those first that it needs."""
        return tuple(dict.fromkeys((*self.needs, *self.takes)))

    def called(self, language: Language) -> str:
        """Its name for the user."""
        return text_in(self.label, language) or self.name.replace("_", " ")


class JobSpec(Part):
    """The description of a job: its slots, its commands, and the actions that do them.

    All mistakes of a spec are reported together when it is created.

    Attributes:
        name: The type of its jobs.
        slots: The information that its commands need.
        commands: What a user can request; at least one.
        actions: Types of actions of your own, in addition to ask_user, call_api, validate_data and
            extract_info.
        version: A job of another version is refused.
        languages: The languages of its texts: en, zh.
        question: The question for the command, if not the engine's own.
        base_urls: The addresses that call_api may reach, with everything below them.
        api_key_env: The environment variable with the secret that call_api sends as a bearer token.
        api_timeout: Seconds that one call of an API may take.
        confirm: False confirms only commands that say `confirm: true`.
        max_asks: How often in a row it asks without progress before the job fails.
        max_corrections: How many values the user may change; with one more the job fails.

    Raises:
        JobSpecError: Names the field, the value and the fix of each mistake.
    """

    name: SlotName = Field(kw_only=False)
    slots: Row[Slot]
    commands: Row[JobCommand] = Field(min_length=1)
    actions: Row[ActionSpec] = ()
    version: int = Field(default=1, ge=1)
    languages: Row[Literal["en", "zh"]] = Field(default=("en",), min_length=1)
    question: Texts = Field(default_factory=dict[str, str])
    base_urls: Row[Address] = ()
    api_key_env: Variable | None = None
    api_timeout: float = Field(default=30.0, gt=0, le=600)
    confirm: bool = True
    max_asks: int = Field(default=3, ge=1, le=20)
    max_corrections: int = Field(default=5, ge=0, le=100)

    def refuse(self, mistakes: ValidationError) -> None:
        """Report all mistakes together."""
        raise JobSpecError([*mistakes_in(mistakes, type(self))]) from None

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """All names in its parts exist, and no slot depends on itself."""
        yield from broken_rules_of(fields)

    def slot(self, name: str) -> Slot:
        """The slot of a name."""
        return self._slots[name]

    def knows(self, name: str) -> bool:
        """Whether there is a slot of a name."""
        return name in self._slots

    def command(self, name: str) -> JobCommand | None:
        """The command of a name; None if there is none."""
        return self._commands.get(name)

    def slots_of(self, command: str) -> tuple[str, ...]:
        """The slots that a command uses; without a command, all of them."""
        found = self.command(command)
        return tuple(self._slots) if found is None else found.slots

    def action_of(self, command: JobCommand) -> ActionSpec:
        """The type of action that does a command."""
        return next(
            action for action in (*self.actions, *BUILT_IN) if action.type == command.action
        )

    def effects_of(self, command: JobCommand) -> Effects:
        """What a repetition of a command changes outside."""
        return command.effects or self.action_of(command).effects

    def is_confirmed(self, command: JobCommand) -> bool:
        """Whether the user confirms all values before a command is done."""
        if command.confirm is not None:
            return command.confirm
        method = (command.parameters or {}).get("method", "GET")
        is_reading = isinstance(method, str) and method.upper() == "GET"
        return self.confirm and (self.effects_of(command) == "unsafe" or not is_reading)

    def without_forms(self, text: str) -> str:
        """A text with a mask in place of everything that has the form of a secret slot."""
        return without_forms((slot.pattern for slot in self.slots if slot.secret), text, MASK)

    def dependents_of(self, name: str) -> frozenset[str]:
        """The slots whose values depend on that of a slot, directly or through others."""
        return self._dependents.get(name, frozenset())

    def needs_of(self, command: str) -> tuple[str, ...]:
        """The slots that a command needs, each after those on which it depends."""
        found = self.command(command)
        return () if found is None else self.in_order(found.needs)

    def in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Order slots, each once, so that it comes after those on which it depends."""
        left, ordered = [*dict.fromkeys(names)], list[str]()
        while left:
            ready = (name for name in left if not {*self.slot(name).depends_on} & {*left})
            ordered.append(next(ready))
            left.remove(ordered[-1])
        return tuple(ordered)

    @property
    def max_turns(self) -> int:
        """How many turns a job takes at most, with any user and any model.

        Each turn fills a needed slot, changes a given value, gets the command, confirms it, or is
        fruitless. At most `max_corrections` values are changed. A change opens the slot and those
        that depend on it again, or, if the command changes, all. Between two turns with
        progress, at most `max_asks` - 1 are fruitless.
        """
        most = max(len(command.slots) for command in self.commands)
        reopened = 1 + max((len(dependents) for dependents in self._dependents.values()), default=0)
        if len(self.commands) > 1:
            reopened = max(reopened, most)
        filled = most + self.max_corrections * min(reopened, most)
        return self.max_asks * (2 + filled + self.max_corrections) + 1

    @cached_property
    def _slots(self) -> dict[str, Slot]:
        return {slot.name: slot for slot in self.slots}

    @cached_property
    def _commands(self) -> dict[str, JobCommand]:
        return {command.name: command for command in self.commands}

    @cached_property
    def _dependents(self) -> dict[str, frozenset[str]]:
        direct = {
            name: {slot.name for slot in self.slots if name in slot.depends_on}
            for name in self._slots
        }

        def below(name: str) -> set[str]:
            return direct[name].union(*map(below, direct[name]))

        return {name: frozenset(below(name)) for name in direct}
