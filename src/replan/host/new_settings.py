"""The door of a node: the settings that come with the call, and results, which it sees whole."""

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from replan.host.host_call import HostCall, emitter_of, host_call
from replan.langgraph_inside.tasks import checkpoint_of, user_of_server
from replan.log.run_log import TOLD
from replan.log.whole_results import short_results, whole_results
from replan.prompts.sections import Caller
from replan.services import Services
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.limits import RunSettings
from replan.state.questions import fingerprint_of
from replan.state.tightening import LOOSENED, loosening_warnings, refused, tightened

Node = Callable[..., Awaitable[Any]]
"""A node of the graph: an async function of the state that returns its changes."""

HostNode = Callable[[EnhancedState, HostCall], Awaitable[Any]]
"""A node that may call a model: its second argument has what the call needs."""


def settings_of_call(runtime: Runtime[RunSettings], services: Services) -> RunSettings | None:
    """The settings that came with the call; from outside the process they only tighten."""
    context = cast("object", runtime.context)
    if not isinstance(context, RunSettings):
        return None
    return _tightened(context, runtime, services) if services.is_served else context


def refusals_of_call(runtime: Runtime[RunSettings], services: Services) -> list[str]:
    """What the call asked for that only the team may loosen, one sentence each."""
    context, taken = cast("object", runtime.context), settings_of_call(runtime, services)
    if taken is None or not isinstance(context, RunSettings):
        return []
    return [*refused(context, taken)]


def settings_in(runtime: Runtime[RunSettings], services: Services) -> RunSettings:
    """The team's settings; a person whom the server has authenticated is the user."""
    user = user_of_server(runtime) if services.is_served else ""
    return services.settings.replace(user=user) if user else services.settings


def within_team(
    state: EnhancedState, runtime: Runtime[RunSettings], services: Services
) -> EnhancedState:
    """The state, with no looser settings than the team's where clients of a server may edit it."""
    if not services.is_served or "settings" not in state:
        return state
    return {**state, "settings": _tightened(settings_of(state), runtime, services)}


def _tightened(
    asked: RunSettings, runtime: Runtime[RunSettings], services: Services
) -> RunSettings:
    opened = services.client_overrides
    if user_of_server(runtime):
        opened -= {"user"}
    return tightened(settings_in(runtime, services), asked, opened)


def changed_settings(state: EnhancedState, asked: RunSettings | None) -> EnhancedState:
    """What new settings change in the state of a running run; empty if they are the same."""
    if asked is None:
        return {}
    old = settings_of(state)
    new = old.overridden_by(asked)
    if new == old:
        return {}
    # Rounds that a person's answers gave back are added.
    more = rounds_of(state) + new.limits.max_rounds - old.limits.max_rounds
    return {"settings": new, "max_rounds": max(1, more)}


def with_settings_of_call(
    state: EnhancedState, runtime: Runtime[RunSettings], services: Services
) -> EnhancedState:
    """The state with the settings that came with the call, within what the team allows."""
    kept = within_team(state, runtime, services)
    return {**kept, **changed_settings(kept, settings_of_call(runtime, services))}


def host_node(caller: Caller) -> Callable[[HostNode], Node]:
    """Make a node of a function of the state and of the call of the host that it may make."""

    def with_call(node: HostNode) -> Node:
        def begun(state: EnhancedState, services: Services, *given: Any) -> Awaitable[Any]:
            return node(state, host_call(caller, state, services, *given))

        return _with_door(node, begun)

    return with_call


def with_new_settings(node: Node) -> Node:
    """Let a node see settings that came as `context`, and whole results, and store both."""
    wanted = frozenset(signature(node).parameters)

    def begun(state: EnhancedState, services: Services, *given: Any) -> Awaitable[Any]:
        asked = zip(("runtime", "config"), given, strict=True)
        return node(state, services=services, **{n: each for n, each in asked if n in wanted})

    return _with_door(node, begun)


def _with_door(node: Callable[..., Any], begun: Callable[..., Awaitable[Any]]) -> Node:
    async def settled(
        state: EnhancedState,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
        *,
        services: Services,
    ) -> dict[str, Any]:
        new = with_settings_of_call(state, runtime, services)
        changes: dict[str, Any] = {
            name: new.get(name) for name in _SETTLED if new.get(name) != state.get(name)
        }
        warnings = await _report_warnings(state, new, runtime, services)
        whole = await whole_results(state, services.log)
        known = {**whole, **changes, "warnings": [*state.get("warnings", []), *warnings]}
        made = await begun(known, services, runtime, config)
        update = {**changes, **short_results(made, services.log)}
        if warnings:
            update["warnings"] = _with_first(warnings, update.get("warnings", []))
        return update

    settled.__name__, settled.__doc__ = node.__name__, node.__doc__
    return settled


_SETTLED: Final = ("settings", "max_rounds")


async def _report_warnings(
    state: EnhancedState, settled: EnhancedState, runtime: Runtime[RunSettings], services: Services
) -> list[str]:
    """Report what new settings loosen, and what a client wants in vain, by one event each."""
    kept, known = within_team(state, runtime, services), state.get("warnings", [])
    by = "a client" if services.is_served else "the context of a call"
    new = loosening_warnings(settings_of(kept), settings_of(settled), by, services.clock())
    if services.is_served:
        refusals = [
            *refused(settings_of(state), settings_of(kept)),
            *refusals_of_call(runtime, services),
        ]
        new += [each for each in dict.fromkeys(refusals) if each not in known]
    # Those of an edit of the state came without an event.
    loosened = [each for each in known if each.startswith(LOOSENED)]
    if not new and not loosened:
        return []
    run_id, log = state.get("run_id", ""), services.log
    if new and (checkpoint := checkpoint_of(runtime)):
        # A node that begins again says the same, though it is later.
        new = cast("list[str]", await log.note(run_id, f"{TOLD}at/{checkpoint}", [*new]))
    noted = await log.notes(run_id, TOLD)
    emitter = emitter_of(state, services, runtime)
    for text in (*loosened, *new):
        if (key := TOLD + fingerprint_of(text)) not in noted:
            await emitter.warn(text)
            await log.note(run_id, key, value=True)
    return new


def _with_first(first: list[str], warnings: list[str] | Overwrite) -> list[str] | Overwrite:
    if isinstance(warnings, Overwrite):
        return Overwrite([*first, *warnings.value])
    return [*first, *warnings]
