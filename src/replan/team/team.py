"""A team, and what its runs may do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, overload

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails

from replan.base.declared.mistakes import mistakes_in
from replan.base.declared.part import (
    Part,
    Row,
    did_you_mean,
    field_error,
    fields_of,
    list_in,
    name_like,
    rule_error,
)
from replan.base.declared.references import name_in
from replan.base.errors import Mistake, TeamError, UsageError
from replan.base.values import described
from replan.ports.run_book import PYTHON, TeamIdentity
from replan.ports.tool_provider import server_in
from replan.state.limits import HOOK_SECONDS, Price, RunSettings
from replan.team.fields.code import Callback, Function
from replan.team.fields.folders import Knowledge, Out, Workspace
from replan.team.fields.models import Model, Prompt
from replan.team.fields.texts import OpenField
from replan.team.host import NO_HOST, Host
from replan.team.specialist import Specialist
from replan.team.tool_server import AnyToolServer, ServerName
from replan.traces.option import Traces

if TYPE_CHECKING:
    from replan.models.streams import ToolCallChecker

    AnyHost = Host | Model | Sequence[Specialist]

    class TheHost:
        """A host, or the one model that it has."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Host: ...
        def __get__(self, instance: Any, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: AnyHost) -> None: ...
else:

    def _host(value: object) -> object:
        if isinstance(value, list | tuple):
            fix = "Write the host first, then the list: Team(HOST, [SPECIALIST, ...])."
            raise field_error("wrong_type", "This is a list.", fix)
        return value if isinstance(value, Host | Mapping) else {"model": value}

    TheHost = Annotated[Host, BeforeValidator(_host, json_schema_input_type=Host | str)]
    ToolCallChecker = Function

Calls = Literal["merged", "separate"]
"""Whether one call of the host may do the work of two."""


def _with_specialists(schema: dict[str, Any], kind: type[BaseModel]) -> None:
    described(schema, kind)
    schema["required"] = ["specialists"]


def _no_host() -> Any:
    return NO_HOST


def _tool_call_checker() -> "ToolCallChecker":
    from replan.models.streams import holds_tool_call  # noqa: PLC0415 - a team is light

    return holds_tool_call


_is_currency = name_like(
    r"\S{0,8}", "This is not the name of a currency.", "Write it as EUR is, without blanks."
)


class Team(Part, RunSettings):
    """A team of specialists with a host that plans for them, and what its runs may do.

    All mistakes of a team and its parts are reported together when the team is created.

    Attributes:
        host: Thinks, plans, judges and answers. A model alone is a host with this model. Without
            one, a run is the one step of the one specialist, and its result is the answer.
        specialists: The members of the team; at least one. A list of them may stand alone.
        name: The name of the system.
        calls: merged lets one call of the host do the work of two; separate does not.
        plan_template: The shape of a plan in the prompts.
        thinking_prompt_template: The thinking prompt, if the host has none of its own.
        reflection_prompt_template: The feedback prompt, if the host has none of its own.
        stream_tool_call_checker: Receives the pieces of a reply of a host with tools, and returns
            whether they contain a tool call, so that their text is not the answer. It may wait for
            as many pieces as it needs; pieces are shown only after its decision.
        callbacks: Objects with some of the hooks of a MultiAgentCallback.
        hook_timeout: Seconds after which a hook of a callback is abandoned.
        traces: How its runs are traced by OpenTelemetry; without it they are not.
        tool_servers: Servers whose tools may be granted, by names of your own: a ToolServer, or in
            Python any ToolProvider. tools: [files/read_file, git/*] grants some of their tools.
        workspace: The folder that specialists may read and write. In a team file the path is
            relative to the file, and the default is the folder of the file.
        out: The folder for the files that specialists make; by default the workspace. In a team
            file the path is relative to the file.
        prices: What models cost for each million tokens, by their configured name or by their
            provider's name.
        currency: The currency of the prices, such as EUR; costs are shown with it.
        knowledge: The team's knowledge: a folder of texts, or an object with a search. In a team
            file it is a folder relative to the file, or module:name.
        client_overrides: Settings (approval), limits (max_seconds) and keys of the state
            (current_specialist_results) that clients of a server may loosen or edit. Otherwise
            clients can only tighten settings, and edit the conversation and the plan.

    Raises:
        TeamError: Names the field, the value and the fix of each mistake.
    """

    model_config = ConfigDict(json_schema_extra=_with_specialists)

    host: TheHost = Field(default_factory=_no_host, kw_only=False)
    specialists: Row[Specialist] = Field(default=(), kw_only=False, min_length=1)
    name: str = Field(default="replan", min_length=1)
    calls: Calls = "merged"
    plan_template: Prompt = ""
    thinking_prompt_template: Prompt = ""
    reflection_prompt_template: Prompt = ""
    stream_tool_call_checker: ToolCallChecker = Field(default_factory=_tool_call_checker)
    callbacks: Row[Callback] = ()
    hook_timeout: float = Field(default=HOOK_SECONDS, gt=0, allow_inf_nan=False)
    tool_servers: Mapping[ServerName, AnyToolServer] = Field(default_factory=dict[str, Any])
    traces: Traces | None = None
    workspace: Workspace = Field(default=None, validate_default=True, examples=["."])
    out: Out = Field(default=None, validate_default=True, examples=["reports"])
    prices: Mapping[str, Price] = Field(default_factory=dict[str, Price])
    currency: Annotated[str, AfterValidator(_is_currency)] = Field(default="", examples=["EUR"])
    knowledge: Knowledge | None = Field(default=None, examples=["docs"])
    client_overrides: Row[OpenField] = Field(default=(), examples=[["max_seconds"]])

    def refuse(self, mistakes: ValidationError) -> None:
        """Report all mistakes together."""
        raise TeamError([*mistakes_in(mistakes, type(self))]) from None

    @classmethod
    def named(cls, positional: tuple[Any, ...]) -> dict[str, Any]:
        """A list alone is of the specialists of a team without a host."""
        if len(positional) == 1 and isinstance(positional[0], list | tuple):
            return {"specialists": positional[0]}
        return super().named(positional)

    @property
    def is_direct(self) -> bool:
        """Whether it has no host."""
        return not self.host.chat_models

    @property
    def settings(self) -> RunSettings:
        """The settings of a run, unless its request sets others."""
        return RunSettings(**{name: getattr(self, name) for name in RunSettings.model_fields})

    @property
    def identity(self) -> TeamIdentity:
        """What its runs are known to be done by, wherever they are continued."""
        cards = [specialist.card.model_dump(mode="json") for specialist in self.specialists]
        whole = [cards, self.settings.model_dump(mode="json"), self.host.system_prompt]
        return TeamIdentity.of(self.name, json.dumps(whole, sort_keys=True), PYTHON, self.currency)

    def named_model(self, name: str) -> Any:
        """A placeholder for a model of which only the name is known."""
        return name

    @property
    def chat_models(self) -> Mapping[str, Any]:
        """The models of its parts, by their fields."""
        found = {f"host.{name}": model for name, model in self.host.chat_models.items()}
        for place, level in (("memory", self.memory), ("host.memory", self.host.memory)):
            if level.summary_model_id:
                found[f"{place}.summary_model_id"] = self.named_model(level.summary_model_id)
        for index, specialist in enumerate(self.specialists):
            found |= {
                f"specialists[{index}].{name}": one for name, one in specialist.chat_models.items()
            }
        return found

    def refusal(self, mistakes: Sequence[Mistake]) -> UsageError:
        """Return the error for mistakes that were found while building."""
        return TeamError(mistakes)

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Each specialist has a unique name, and everything that it names exists."""
        yield from _unknown_servers(fields)
        yield from _unwritten_summaries(fields)
        yield from _unplanned(fields)
        if "specialists" not in fields:
            yield InitErrorDetails(type="missing", loc=("specialists",), input=None)
        seen: dict[str, int] = {}
        for index, given_specialist in enumerate(list_in(fields.get("specialists"))):
            specialist = fields_of(given_specialist)
            field = "name" if "name" in specialist else "use"
            name = specialist.get(field)
            name = name_in(name) if field == "use" and isinstance(name, str) else name
            first = seen.setdefault(name.casefold(), index) if isinstance(name, str) else index
            if first != index:
                reason = f"specialists[{first}] already has this name."
                fix = "Give each specialist its own name."
                yield rule_error(
                    ("specialists", index, field), name, "duplicate_specialist", reason, fix
                )


def _unknown_servers(fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    servers = [*fields_of(fields.get("tool_servers"))]
    parts: dict[tuple[str | int, ...], Any] = {("host",): fields.get("host")}
    for index, given_specialist in enumerate(list_in(fields.get("specialists"))):
        parts["specialists", index] = given_specialist
    for (where, part), field in product(parts.items(), ("tools", "approve")):
        for index, grant in enumerate(list_in(fields_of(part).get(field))):
            server = server_in(grant)
            if server and server not in servers:
                reason = f"There is no tool server '{server}'."
                fix = did_you_mean(server, servers, "Describe it under tool_servers.")
                yield rule_error((*where, field, index), grant, "unknown_server", reason, fix)


def _unplanned(fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Find what needs a host in a team without one."""
    if fields.get("host", NO_HOST) is not NO_HOST:
        return
    if len(list_in(fields.get("specialists"))) > 1:
        fix = "Give the host, for example its model, or one specialist only."
        reason = "It is missing, and there are several specialists."
        yield rule_error(("host",), None, "no_host", reason, fix)
    if _mode_of(fields) == "summary":
        reason = "The host writes the summary, and there is none."
        fix = "Give the team a host, or another mode."
        yield rule_error(("memory", "mode"), "summary", "no_host", reason, fix)


def _unwritten_summaries(fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Find specialists in mode summary although the host writes none."""
    if (_mode_of(fields.get("host")) or _mode_of(fields)) == "summary":
        return
    for index, given_specialist in enumerate(list_in(fields.get("specialists"))):
        if _mode_of(given_specialist) == "summary":
            where = ("specialists", index, "memory", "mode")
            fix = "Give the team mode summary, too."
            reason = "The host writes the summary, and its memory has another mode."
            yield rule_error(where, "summary", "no_summary", reason, fix)


def _mode_of(part: Any) -> Any:
    return fields_of(fields_of(part).get("memory")).get("mode")
