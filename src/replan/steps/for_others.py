"""An attempt for a run in another process, with that run's calls, limits and records.

The log is that of the run. So its calls reserve what the run may spend, a loop of tools finds
the calls that are on record, and a repetition has the same keys.
"""

from collections.abc import Callable

from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.errors import LimitReachedError
from replan.events.calls import Calls, calls_at_work, emitter_at_work
from replan.events.emitter import Emitter, Hooks
from replan.events.types import BaseEvent
from replan.facts.fact_tools import facts_at_work
from replan.failures import can_pass, describe
from replan.langgraph_inside.tasks import config_inside, inherited_config, with_handlers
from replan.models.retries import tries_of
from replan.models.transcript import Transcript, transcript_at_work
from replan.plan.preview import TRIES
from replan.ports.ask_user import Waiting, place_at_work
from replan.ports.elsewhere import AskedElsewhere, StepEnd, StepErrand
from replan.ports.folders import folders_at_work
from replan.ports.thread_repository import ThreadOfStep, thread_of_step
from replan.services import Services
from replan.spending.account import Account
from replan.spending.meter import Meter
from replan.spending.scopes import step_scopes
from replan.state.limits import RunSettings
from replan.state.questions import Question, QuestionKind
from replan.state.results import SpecialistResult, result_as_json, storable_result
from replan.steps.step_record import Asker


class _ListingAsker(Asker):
    """Collects the questions, answered or not."""

    def __init__(self, errand: StepErrand, services: Services) -> None:
        def new(question: Question) -> Question:
            # Whether the run may ask more is said where the run is.
            return question.replace(asked_at=services.clock())

        step_id = errand.context.plan_step.id
        super().__init__(step_id, errand.specialist, known=errand.questions, new=new)
        self.listed: list[AskedElsewhere] = []

    def ask(
        self, text: str, kind: QuestionKind, details: JsonValue, *, secret: bool = False
    ) -> JsonValue:
        place = place_at_work.get()
        self.listed.append(
            AskedElsewhere(text=text, kind=kind, details=details, secret=secret, place=place)
        )
        return super().ask(text, kind, details, secret=secret)


async def done_for_another(
    errand: StepErrand, services: Services, tell: Callable[[BaseEvent], None]
) -> StepEnd:
    """Make an attempt of a step of another process's run."""
    context = errand.context
    account = services.accounts.of(services.log, context.run_id)
    meter = _meter(errand, services, account, tell)
    asker = _ListingAsker(errand, services)
    end = await _try_once(errand, services, meter, asker)
    return end.replace(asked=tuple(asker.listed), used=meter.count, attempt=errand.context.attempt)


async def _try_once(
    errand: StepErrand, services: Services, meter: Meter, asker: _ListingAsker
) -> StepEnd:
    try:
        async with meter:
            with asker:
                result = await _run_specialist(errand, services, meter)
    except Waiting:
        return StepEnd(how="asked")
    except GraphBubbleUp:
        told = "A graph interrupted itself, which cannot be answered from another process."
        fix = "Ask with replan.ask_user, or let the specialist have no queue."
        return StepEnd(how="failed", error=f"{told} {fix}", can_pass=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run is told
        return _end_of_failure(error, meter)
    if asker.asked:
        return StepEnd(how="asked")
    if meter.refused is not None and result.is_failed:
        return _end_of_failure(meter.refused, meter)
    return StepEnd(how="result", result=result_as_json(result))


def _end_of_failure(error: Exception, meter: Meter) -> StepEnd:
    limit = error if isinstance(error, LimitReachedError) else meter.refused
    if limit is not None:
        return StepEnd(how="limit", limit=(limit.limit, limit.value, limit.scope))
    can_help = can_pass(error) and tries_of(error) < TRIES
    return StepEnd(how="failed", error=describe(error), can_pass=can_help)


async def _run_specialist(errand: StepErrand, services: Services, meter: Meter) -> SpecialistResult:
    context, run_id = errand.context, errand.context.run_id
    key = {"idempotency_key": context.idempotency_key}
    config = config_inside(with_handlers({}, meter.handlers, metadata=key), RunSettings)
    transcript = Transcript(services.log, run_id, context.idempotency_key, errand.on_doubt)
    transcript.attempt = context.attempt
    inherited_config.set(config)
    folders_at_work.set(services.folders)
    thread_of_step.set(
        ThreadOfStep(
            repository=services.threads,
            thread_id=errand.thread_id,
            run_id=run_id,
            clock=services.clock,
            new_id=services.new_id,
        )
    )
    transcript_at_work.set(lambda: transcript)
    calls_at_work.set(meter.calls)
    if meter.calls is not None:
        emitter_at_work.set((meter.calls.emitter, config))
    if services.remembers:
        place = {"step_id": context.plan_step.id, "specialist": errand.specialist}
        facts = services.facts(errand.settings, None, run_id, node="specialist", **place)
        facts_at_work.set(facts)
    given = await services.specialists[errand.specialist].run(context, config)
    return storable_result(SpecialistResult.model_validate(given))


def _meter(
    errand: StepErrand,
    services: Services,
    account: Account,
    tell: Callable[[BaseEvent], None],
) -> Meter:
    context, name = errand.context, errand.specialist
    run_id, step_id = context.run_id, context.plan_step.id
    emitter = Emitter(
        tell,
        Hooks().of(run_id),
        run_id,
        context.round,
        keeps_prompts=bool(errand.settings.keep_prompts),
    )
    about = {
        "node": f"specialist_{name}",
        "step_id": step_id,
        "specialist": name,
        "attempt": context.attempt,
    }
    effects = services.specialists[name].card.effects
    return Meter(
        account,
        step_scopes(errand.settings.limits, services, name, step_id),
        new_id=services.new_id,
        prices=services.prices,
        calls=Calls(emitter=emitter, config={}, about=about, effects=effects),
    )
