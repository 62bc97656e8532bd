"""What a new input makes of a thread: a fresh run, with what earlier runs left behind settled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite
from pydantic import JsonValue

from replan.errors import InputError
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import overlooked
from replan.plan.markdown.seal import origin_of
from replan.plan.model import TaskPlan
from replan.plan.rerun import Rerun, reopened, rerun_reasons
from replan.ports.journal import BEGAN, Journal
from replan.services import Services
from replan.spending.scopes import check_prices
from replan.state.channels import checked, conversation
from replan.state.enhanced import EnhancedState, fresh_run
from replan.state.limits import RunSettings
from replan.state.placing import refusals_of, told_with_place
from replan.state.questions import given_answers
from replan.state.results import ExecutionRecord, SpecialistResult
from replan.state.usage import Usage
from replan.steps.collected import collect
from replan.steps.kept import kept_results, note_kept

NOTHING_TO_DO = "There is nothing to do: give `messages` with words, or a `plan`."
"""What is said of an input that says nothing."""


@dataclass(frozen=True)
class Start:
    """The start of a run.

    Attributes:
        update: What the thread's state becomes.
        view: What the run begins with: its own values over those of the thread.
        plan: The plan that was handed in, or none.
        reruns: Its steps that were settled and run again.
    """

    update: dict[str, Any]
    view: EnhancedState
    plan: TaskPlan | None
    reruns: tuple[Rerun, ...] = ()


async def start_run(
    state: EnhancedState,
    asked: RunSettings | None,
    config: RunnableConfig,
    services: Services,
    *,
    began: str,
) -> Start:
    """Begin a run on the newest input.

    Args:
        state: The thread, with the input.
        asked: The settings that came with the call.
        config: The configuration of the call.
        services: What the run works with.
        began: The checkpoint that it begins from; the same if it has to begin again.

    Raises:
        InputError: There is neither a message nor a plan, or the plan names unknown specialists.
        PlanDocumentError: The plan that was handed in has mistakes.
        UnpricedModelError: Money is bound, and a configured model has no price.
    """
    settings = services.settings.overridden_by(asked)
    check_prices(settings.limits, services)
    document = state.get("plan") or ""
    plan, reruns = read_handed_plan(document, services)
    messages, given = state.get("messages", []), list[AnyMessage]()
    if not messages:
        if plan is None:
            raise InputError(NOTHING_TO_DO)
        given = [HumanMessage(plan.title or "Run this plan.")]
    name = str(config.get("metadata", {}).get("run_id") or "")
    update = fresh_run(await _run_id(name, began, services), settings)
    kept: dict[str, SpecialistResult] = {}
    if plan is not None:
        update["kept_from"] = origin_of(document)
        kept = await kept_results(plan, update["kept_from"], state, services.journal)
        await note_kept(update["run_id"], kept.values(), services.journal)
    update["kept_results"] = Overwrite(kept)
    update["questions"] = Overwrite(given_answers(state.get("answers") or {}, services.clock()))
    update["max_rounds"] = settings.limits.max_rounds
    view: EnhancedState = {
        **state,
        "messages": [*messages, *given],
        "run_id": update["run_id"],
        "settings": settings,
        "kept_results": kept,
        "current_round": 0,
        "event_seq": 0,
        "usage": Usage(),
    }
    # Told from a person's edit of the plan that stands there.
    update["current_plan"] = Overwrite(plan)
    added = {"messages": given, "execution_history": await _unsettled(state, services)}
    return Start({**_changed(update, state), **added}, view, plan, reruns)


def _changed(update: Mapping[str, Any], state: EnhancedState) -> dict[str, Any]:
    """What the state does not hold already: on a new thread, most of what is reset is empty."""
    news = {
        key: value.value if isinstance(value, Overwrite) else value for key, value in update.items()
    }
    return {key: update[key] for key, new in news.items() if key not in state or state[key] != new}


def check_input(given: Any, services: Services) -> None:
    """Refuse an input that no run can begin from, before anything of it is stored.

    Raises:
        InputError: It is no mapping, says nothing, or its plan names unknown specialists.
        PlanDocumentError: The plan has mistakes.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"The input is a {type(given).__name__}. Give a mapping with `messages`, for example "
            '{"messages": [("user", "...")]}, or with a plan under `plan`.'
        )
    asked = cast("Mapping[str, Any]", given)
    if not asked:
        # LangGraph draws a graph by handing it nothing; the first node refuses that.
        return
    document = checked("plan", str | None, asked.get("plan")) or ""
    if read_handed_plan(document, services)[0] is None and _is_blank(asked.get("messages")):
        raise InputError(NOTHING_TO_DO)


def _is_blank(given: Any) -> bool:
    """Whether the newest message of an input says nothing."""
    if isinstance(given, Overwrite):
        given = given.value
    given = cast("list[Any]", given) if isinstance(given, list) else [given]
    newest = given[-1] if given else None
    if newest is None or isinstance(newest, RemoveMessage):
        return newest is None
    (message,) = conversation([], [[newest]])
    return message.type == "human" and not str(message.content).strip()


def read_handed_plan(
    text: str | None, services: Services
) -> tuple[TaskPlan | None, tuple[Rerun, ...]]:
    """Read a person's plan document, strictly, and open what was edited since it was done.

    Raises:
        PlanDocumentError: It has mistakes.
        InputError: It names specialists that the team does not have, or nobody where no card fits.
    """
    if not text or not text.strip():
        return None, ()
    document = PlanDocument.parse(text)
    plan = document.plan
    reruns = rerun_reasons(plan)
    plan = reopened(plan, reruns)
    refused = [told_with_place(each, document) for each in refusals_of(plan.steps, services.team)]
    if refused:
        # A name in the wrong place is often why a step names nobody.
        names = [f"In {each}." for each in overlooked(text) if each.kind == "name"]
        raise InputError("\n".join([*refused, *names]))
    return plan, reruns


async def _run_id(given: str, began: str, services: Services) -> str:
    """The name that the caller gave, if this run is the first to bear it; else a new one.

    Graphs inherit the names of those that run them, and batches share one. So a name belongs to
    the run that began at one checkpoint, which only a run that begins again finds there.
    """
    if not given or await _began_at(given, began, services.journal) != began:
        return services.new_id()
    return given


async def _began_at(name: str, began: str, journal: Journal) -> JsonValue:
    """The checkpoint at which the run of a name began; this one if no run bears the name yet."""
    noted = (await journal.notes(name, BEGAN)).get(BEGAN)
    if noted is None and await journal.ledger(name):
        # A version that noted no beginnings began it, and steps begin after the run has.
        return None
    return noted or await journal.note(name, BEGAN, began)


async def _unsettled(state: EnhancedState, services: Services) -> list[ExecutionRecord]:
    """Finished work of an earlier run that LangGraph drops when a new message overtakes it."""
    run_id = state.get("run_id")
    if run_id is None or state.get("is_completed"):
        return []
    kept = {key for record in state.get("execution_history", []) for key in record.results.results}
    recorded = await services.journal.results(run_id)
    lost = {result.key: result for result in recorded.values() if result.key not in kept}
    if not lost:
        return []
    return [
        ExecutionRecord(
            round=state.get("current_round", 0), results=collect(lost), timestamp=services.clock()
        )
    ]
