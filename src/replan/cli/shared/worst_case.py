"""Describe what a run takes at worst, before it runs and instead of running it."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from replan.base.texts.signs import harmless
from replan.cli.shared.process import GOOD, WRONG_USE
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep
from replan.plan.rerun import reopened, rerun_reasons
from replan.ports.built_in import is_built_in
from replan.state.conversation.conversation import resolved
from replan.state.knowledge import SEARCHED, RAGOptions, calls_of_knowledge, knowledge_options
from replan.state.limits import RunSettings
from replan.state.options import MemoryOptions, joined
from replan.state.step_options import step_options
from replan.team.chats import Fallback, each_model
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team_file import read_team_file
from replan.views.ahead.outlook import bound_lines, bounds, outlook, outlook_lines
from replan.views.ahead.preview import (
    USUAL_RETRIES,
    KnownTeam,
    calls_of_question,
    calls_of_reply,
    calls_of_try,
)

if TYPE_CHECKING:
    from replan.cli.user_files.orders import Order
    from replan.team.specialist import Specialist
    from replan.team.team import Team

_UNKNOWN = "The plan of a request is made when it runs; whatever it is, the run takes"


def preview_order(
    order: "Order", environment: Mapping[str, str], *, as_json: bool
) -> tuple[str, int]:
    """Return what is ahead of an order, and the exit code."""
    team = _team_of(order, environment)
    if order.plan is None:
        text = json.dumps(bounds(team)) if as_json else "\n".join([_UNKNOWN, *bound_lines(team)])
        return f"{text}\n", GOOD
    whole = PlanDocument.parse(order.plan).plan
    reruns = rerun_reasons(whole)
    plan = reopened(whole, reruns)
    if as_json:
        text = json.dumps(outlook(plan, team, reruns))
    else:
        text = "\n".join(outlook_lines(plan, team, reruns))
    return f"{harmless(text)}\n", WRONG_USE if team.refusals(plan) else GOOD


def _team_of(order: "Order", environment: Mapping[str, str]) -> KnownTeam:
    path = order.team or DEFAULT_TEAM
    team = read_team_file(path, environment, directory=order.folder)
    return team_of(team.config, order.settings, retries=team.models.retries)


def team_of(
    config: "Team",
    run_settings: RunSettings | None = None,
    *,
    retries: Mapping[str, int] | None = None,  # further calls of one reply, by the model's name
) -> KnownTeam:
    """Return what an outlook needs to know of a team."""
    settings = config.settings.overridden_by(run_settings)
    retries_of_models = retries or {}
    memory = resolved(
        config.memory, config.host.memory, run_settings.memory if run_settings else MemoryOptions()
    )
    summing_up = config.named_model(memory.model) if memory.model else config.host.model
    return KnownTeam(
        limits=settings.limits,
        per_try={
            specialist.name: _calls_of_try(specialist, retries_of_models)
            for specialist in config.specialists
        },
        per_step=None
        if config.knowledge is None
        else _calls_of_knowledge(config, run_settings, retries_of_models),
        knowledge=config.knowledge,
        per_question=max(
            (
                sum(map(calls_of_question, _retries_in(model, retries_of_models)))
                for model in config.host.chat_models.values()
            ),
            default=0,
        ),
        merged=_is_merged(config),
        typed=config.host.output_type is not None,
        # One attempt of each model that may be asked.
        per_summary=calls_of_reply(0) * len(_retries_in(summing_up, {})) if memory.writes else 0,
        cards=tuple(specialist.card for specialist in config.specialists),
        revisable=settings.allow_dynamic_update,
        approval=settings.approval,
        asking={specialist.name: specialist.approved_tools for specialist in config.specialists},
        dearest_token=dearest_token(config),
        currency=config.currency,
    )


def _calls_of_knowledge(
    config: "Team", run_settings: RunSettings | None, retries: Mapping[str, int]
) -> Callable[[PlanStep], int]:
    """Count the calls of the host's model that read what is found for one attempt of a step."""
    per_call = _calls_of_reply(config.host.model, retries)
    own = {
        specialist.name.casefold(): knowledge_options(SEARCHED, config.rag, specialist.rag)
        for specialist in config.specialists
    }

    def of(step: PlanStep) -> int:
        said = step_options(RAGOptions, step.parameters, by_model=False)
        last = RAGOptions() if run_settings is None else run_settings.rag
        seats = [
            own[name] for specialist in step.specialists if (name := specialist.casefold()) in own
        ]
        calls = [
            calls_of_knowledge(joined(options, said, last)) for options in seats or own.values()
        ]
        return per_call * (sum(calls) if seats else max(calls, default=0))

    return of


def _is_merged(config: "Team") -> bool | None:
    """Whether one call of the host does the work of two; None where only some calls do."""
    host = config.host
    apart = (host.thinking_model, host.planning_model, host.feedback_model, host.planning_prompt)
    if config.calls == "separate":
        return False
    return None if any(apart) or host.tools else True


def dearest_token(config: "Team") -> float | None:
    """The highest price of a token; None if a model has no price, or is unknown."""
    from replan.models.spending.scopes import price_of  # noqa: PLC0415 - the check without a team is light

    dearest = 0.0
    for _, model in each_model(config.chat_models):
        name = model if isinstance(model, str) else ""
        price = price_of((name, name.partition(":")[2]), config.prices) if name else None
        if model is not None and price is None:
            return None
        dearest = max(dearest, price.input, price.output) if price is not None else dearest
    foreign = (
        _calls_of_try(specialist, {})
        for specialist in config.specialists
        if specialist.chat_model is None
    )
    return None if None in foreign else dearest / 1_000_000


def _calls_of_reply(model: Any, retries: Mapping[str, int]) -> int:
    return sum(map(calls_of_reply, _retries_in(model, retries)))


def _retries_in(model: Any, retries: Mapping[str, int]) -> list[int]:
    """The further attempts at a reply, for each model that may be asked for it."""
    if isinstance(model, Fallback):
        return [number for each in model.models for number in _retries_in(each, retries)]
    if is_built_in([model]):
        return [0]
    return [retries.get(model, USUAL_RETRIES) if isinstance(model, str) else USUAL_RETRIES]


def _calls_of_pipeline(specialist: "Specialist", retries: Mapping[str, int]) -> int:
    """Model calls of one attempt: those of its units, as often as there may be rounds."""
    if specialist.unit_model is None:
        return 0
    from replan.pipelines.turns.building import built_pipeline  # noqa: PLC0415 - few teams have some

    per_call = _calls_of_reply(specialist.unit_model, retries)
    return per_call * built_pipeline(cast("Any", specialist.pipeline)).most_calls


def _calls_of_try(specialist: "Specialist", retries: Mapping[str, int]) -> int | None:
    """Model calls of one attempt; None if unknown: for tools, graphs and functions."""
    if specialist.chat_model is not None and not specialist.tools:
        replies = [_calls_of_reply(model, retries) for model in specialist.chat_models.values()]
        return calls_of_try(max(replies))
    if specialist.job is not None:
        a_turn = (_calls_of_reply(model, retries) for model in specialist.chat_models.values())
        return specialist.most_turns * sum(a_turn)
    if isinstance(specialist.pipeline, type):
        return _calls_of_pipeline(specialist, retries)
    # A ready one, or a function, or the object that it belongs to, may say how many it makes.
    does = specialist.use or getattr(specialist.run, "__self__", specialist.run)
    return getattr(does, "model_calls", None)
