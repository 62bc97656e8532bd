"""Extraction by a model, whose output is treated as data, like a user's words."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.base.failures import describe, is_fatal_for_run
from replan.base.secrets.masking import MASK
from replan.base.values import fields_in
from replan.jobs.extraction.by_rules import read_by_rules
from replan.jobs.extraction.names import aliases
from replan.jobs.extraction.numbers import all_numbers_in
from replan.jobs.extraction.port import Extracted, Wanted
from replan.jobs.job import COMMAND, Job
from replan.jobs.sayings import bare, says_yes
from replan.jobs.spec.slot import Slot
from replan.jobs.spec.slot_values import to_boolean, to_number, to_object
from replan.jobs.views import hidden, secrets_in, without_secrets
from replan.models.chat import Chat
from replan.ports.run_context import here
from replan.prompts.replies.keys import squeezed
from replan.prompts.replies.reply import key_line
from replan.prompts.replies.wrapping import behind_thoughts, json_in, unwrapped
from replan.prompts.sections import Call, data_message, section, system_message
from replan.prompts.templates import load, render

_OWN = (COMMAND, "confirmed", "cancelled")
_LONGEST = 200_000
_MOST_MESSAGES, _LONGEST_EARLIER = 10, 6_000
_NOTHING = frozenset({"", "null", "none", "-"})


@dataclass(frozen=True)
class ModelExtractor:
    """Finds values with a chat model, in one call."""

    chat: Chat
    config: RunnableConfig = field(default_factory=RunnableConfig)  # of the calls

    async def extract(self, wanted: Wanted) -> Extracted:
        """Ask the model once."""
        if not wanted.said.strip():
            return Extracted()
        reply = await self.chat.reply(prompt_of(wanted), self.config)
        return read_extraction(reply.text, wanted)


@dataclass(frozen=True)
class RulesThenModel:
    """Finds values by rules, and asks a model for the rest."""

    model: ModelExtractor

    async def extract(self, wanted: Wanted) -> Extracted:
        """Extract by rules; ask the model if these do not understand the whole message."""
        reading = read_by_rules(wanted)
        by_rules = reading.found
        if reading.is_sure or not wanted.said.strip():
            return by_rules
        # A free text that is more than a value is the model's to read.
        certain = {name: v for name, v in by_rules.values.items() if name not in reading.guessed}
        try:
            found = await self.model.extract(_without_secrets_in(certain, reading.hidden, wanted))
        except Exception as error:
            if is_fatal_for_run(error):
                raise
            trouble = f"The message was read by rules alone: {describe(error)}"
            here().warn(trouble)
            return by_rules.replace(trouble=trouble)
        values = {**_checked(found.values, wanted), **certain}
        return found.replace(command=by_rules.command or found.command, values=values)


def _checked(values: Mapping[str, JsonValue], wanted: Wanted) -> dict[str, JsonValue]:
    """The values of a model that are in the message: a text as it is, a number if it is exact."""
    spec, left = wanted.spec, bare(wanted.said)
    numbers = [number for number, _ in all_numbers_in(wanted.said)]
    kept: dict[str, JsonValue] = {}
    # The longest first: no part of the message is the value of two slots.
    for name, value in sorted(values.items(), key=lambda pair: -len(str(pair[1]))):
        slot = spec.slot(name)
        if slot.type == "text" and not slot.choices:
            text = bare(str(value))
            if not text or text not in left:
                continue
            left = left.replace(text, "\n", 1)
        is_number = slot.type in ("integer", "number")
        if is_number and None in numbers and to_number(value) not in numbers:
            continue
        kept[name] = value
    return {name: kept[name] for name in values if name in kept}


def _without_secrets_in(
    found: Mapping[str, JsonValue], formed: Sequence[str], wanted: Wanted
) -> Wanted:
    """What is wanted, without the secret values that were found in it, or that the job has."""
    just_said = secrets_in(wanted.spec, found)

    def masked(text: str) -> str:
        text = hidden(without_secrets(wanted.spec, wanted.job, text), just_said)
        for each in formed:
            text = text.replace(each, MASK) if wanted.spec.without_forms(each) != each else text
        return text

    messages = [message.replace(content=masked(message.content)) for message in wanted.messages]
    return replace(wanted, said=masked(wanted.said), messages=messages)


def prompt_of(wanted: Wanted) -> list[BaseMessage]:
    """Ask for the values in the new messages of a user; the conversation is data."""
    spec, job = wanted.spec, wanted.job
    commands = "; ".join(
        ", ".join(dict.fromkeys((command.name, command.called("en"), *command.words)))
        for command in spec.commands
    )
    instructions = render(
        load("extract"),
        today=f"{wanted.today:%A}, {wanted.today.isoformat()}",
        commands=commands,
        fields="\n".join(_described(spec.slot(name)) for name in wanted.names),
        asked=", ".join(job.asked.names) or "nothing yet",
    )
    lines = [f"{message.role}: {message.content}" for message in wanted.messages[-_MOST_MESSAGES:]]
    conversation = "\n".join(lines)[-_LONGEST_EARLIER:]
    held = [
        _value_line(spec.slot(name), job) for name in wanted.names if name in job.collected_info
    ]
    parts = [section("parameters", "\n".join(held))] if held else []
    parts += [section("conversation", conversation)] if len(lines) > 1 else []
    parts.append(section("request", wanted.said))
    return [system_message(Call(node="extract"), instructions), data_message(*parts)]


def read_extraction(text: str, wanted: Wanted) -> Extracted:
    """Read a reply, as JSON or as lines; names that are not fields are dropped, and recorded."""
    source = _bare(text[:_LONGEST])
    trouble = _BROKEN if json_in(source).startswith("{") and not _object(source) else ""
    field_names = frozenset((*_OWN, *wanted.names))
    reply_fields = _object(source) or ({} if trouble else dict(_lines(source, field_names)))
    fields = {name: value for name, value in reply_fields.items() if not _is_nothing(value)}
    confirmed = to_boolean(fields.get("confirmed"))
    if confirmed and not says_yes(wanted.said):
        # What lets something happen is the user's to say.
        confirmed = None
    command = _command(fields.get(COMMAND), wanted)
    values = {name: fields[name] for name in wanted.names if name in fields}
    # A user who wants something has not given up.
    cancelled = to_boolean(fields.get("cancelled")) is True and not (command or values)
    return Extracted(
        command=command,
        values=values,
        confirmed=confirmed,
        cancelled=cancelled,
        dropped=tuple(name for name in fields if name not in field_names),
        trouble=trouble,
    )


_BROKEN = "The model's reply is no JSON object, so nothing of it is taken."


def _described(slot: Slot) -> str:
    kind = "one of: " + ", ".join(slot.choices) if slot.choices else slot.type
    names = [word for word in dict.fromkeys((slot.called("en"), *slot.words)) if word != slot.name]
    also = f" ({', '.join(names)})" if names else ""
    return f"- {slot.name}{also}: {kind}"


def _value_line(slot: Slot, job: Job) -> str:
    return f"{slot.name}: {'***' if slot.secret else job.collected_info[slot.name]}"


def _bare(text: str) -> str:
    return behind_thoughts(unwrapped(text))


def _object(source: str) -> dict[str, JsonValue]:
    """The fields of a reply that is a JSON object; empty if it is none."""
    try:
        return fields_in(to_object(json.loads(json_in(source), strict=False)))
    except (ValueError, RecursionError):
        return {}


def _lines(source: str, field_names: Collection[str]) -> Iterable[tuple[str, JsonValue]]:
    names = {squeezed(name): name for name in field_names}
    for line in source.split("\n"):
        if found := key_line(line):
            name = names.get(squeezed(found.name))
            yield name or found.name.casefold(), found.value if name else "?"


def _is_nothing(value: JsonValue) -> bool:
    return value in (None, [], {}) or (isinstance(value, str) and bare(value) in _NOTHING)


def _command(value: JsonValue, wanted: Wanted) -> str:
    if not isinstance(value, str):
        return ""
    names = (command.name for command in wanted.spec.commands if bare(value) in aliases(command))
    return next(names, "")
