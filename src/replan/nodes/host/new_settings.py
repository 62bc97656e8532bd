"""The door of a node: the settings that come with the call, and results, which it sees whole."""

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from replan.base.langgraph_inside.tasks import checkpoint_of, is_checkpointed, user_of_server
from replan.log.run_log import TOLD
from replan.log.whole_results import short_results, whole_results
from replan.nodes.host.host_call import HostCall, emitter_of, host_call
from replan.prompts.sections import Caller
from replan.specialists.services import Services
from replan.state.changed_steps import plan_write
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
    context, settings = cast("object", runtime.context), settings_of_call(runtime, services)
    if settings is None or not isinstance(context, RunSettings):
        return []
    return [*refused(context, settings)]


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
    settings: RunSettings, runtime: Runtime[RunSettings], services: Services
) -> RunSettings:
    opened = services.client_overrides
    if user_of_server(runtime):
        opened -= {"user"}
    return tightened(settings_in(runtime, services), settings, opened)


def changed_settings(state: EnhancedState, requested: RunSettings | None) -> EnhancedState:
    """What new settings change in the state of a running run; empty if they are the same."""
    if requested is None:
        return {}
    old = settings_of(state)
    new = old.overridden_by(requested)
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
    changed = changed_settings(kept, settings_of_call(runtime, services))
    return {**kept, **changed} if changed else kept


def host_node(caller: Caller) -> Callable[[HostNode], Node]:
    """Make a node of a function of the state and of the call of the host that it may make."""

    def with_call(node: HostNode) -> Node:
        def call(state: EnhancedState, services: Services, *config: Any) -> Awaitable[Any]:
            return node(state, host_call(caller, state, services, *config))

        return _wrapped_node(node, call)

    return with_call


def with_new_settings(node: Node) -> Node:
    """Let a node see settings that came as `context`, and whole results, and store both."""
    names = frozenset(signature(node).parameters)

    def call(state: EnhancedState, services: Services, *config: Any) -> Awaitable[Any]:
        available = zip(("runtime", "config"), config, strict=True)
        return node(state, services=services, **{n: each for n, each in available if n in names})

    return _wrapped_node(node, call)


def _wrapped_node(node: Callable[..., Any], call: Callable[..., Awaitable[Any]]) -> Node:
    """Wrap a node: the call's settings and whole results go in; what is stored is short."""

    async def wrapped(
        state: EnhancedState,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
        *,
        services: Services,
    ) -> dict[str, Any]:
        new = with_settings_of_call(state, runtime, services)
        changes: dict[str, Any] = {}
        if new is not state:
            changes = {n: new.get(n) for n in _SETTLED if new.get(n) != state.get(n)}
        warnings = await _report_warnings(state, new, runtime, services)
        whole = await whole_results(state, services.log)
        node_state = {**whole, **changes, "warnings": [*state.get("warnings", []), *warnings]}
        node_update = await call(node_state, services, runtime, config)
        update = {**changes, **short_results(node_update, services.log)}
        if "current_plan" in update and is_checkpointed(config):
            before = state.get("current_plan")
            update["current_plan"] = plan_write(before, update["current_plan"])
        if warnings:
            update["warnings"] = _with_first(warnings, update.get("warnings", []))
        return {key: each for key, each in update.items() if not _is_known(each, key, state)}

    wrapped.__name__, wrapped.__doc__ = node.__name__, node.__doc__
    return wrapped


_SETTLED: Final = ("settings", "max_rounds")
_MISSING: Final = object()


def _is_known(written: object, key: str, state: EnhancedState) -> bool:
    """Whether a write is empty, and so is what the state has: then it would change nothing."""
    empty = written.value if isinstance(written, Overwrite) else written
    return not empty and state.get(key, _MISSING) == empty


async def _report_warnings(
    state: EnhancedState, settled: EnhancedState, runtime: Runtime[RunSettings], services: Services
) -> list[str]:
    """Report what new settings loosen, and what a client wants in vain, by one event each."""
    kept, reported = within_team(state, runtime, services), state.get("warnings", [])
    by = "a client" if services.is_served else "the context of a call"
    new = list[str]()
    if settled is not state:
        new = loosening_warnings(settings_of(kept), settings_of(settled), by, services.clock())
    if services.is_served:
        refusals = [
            *refused(settings_of(state), settings_of(kept)),
            *refusals_of_call(runtime, services),
        ]
        new += [refusal for refusal in dict.fromkeys(refusals) if refusal not in reported]
    # Those of an edit of the state came without an event.
    loosened = [text for text in reported if text.startswith(LOOSENED)]
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
