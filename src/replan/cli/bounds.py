"""What an outlook needs to know of a team: its limits, and what bounds its model calls."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from replan.cli.outlook import KnownTeam
from replan.plan.preview import USUAL_RETRIES, calls_of_reply, calls_of_try
from replan.ports.built_in import is_built_in
from replan.state.limits import RunSettings

if TYPE_CHECKING:
    from replan.team.specialist import Specialist
    from replan.team.team import Team


def team_of(
    config: "Team",
    asked: RunSettings | None = None,
    *,
    retries: Mapping[str, int] | None = None,
) -> KnownTeam:
    """Give what an outlook needs to know of a team.

    Args:
        config: The team.
        asked: What one run is to do otherwise.
        retries: Further calls of one reply by the name of the model, where they are configured.
    """
    settings = config.settings.overridden_by(asked)
    known = retries or {}
    return KnownTeam(
        limits=settings.limits,
        per_try={each.name: _calls_of_try(each, known) for each in config.specialists},
        per_reply=max(_calls_of_reply(model, known) for model in config.host.chat_models.values()),
        merged=_is_merged(config),
        typed=config.host.output_type is not None,
        cards=tuple(each.card for each in config.specialists),
        revisable=settings.allow_dynamic_update,
        approval=settings.approval,
        asking={each.name: tuple(each.approve) for each in config.specialists},
        dearest_token=dearest_token(config),
    )


def _is_merged(config: "Team") -> bool | None:
    """Whether one call of the host does the work of two; none where only some calls do."""
    host = config.host
    apart = (host.thinking_model, host.planning_model, host.feedback_model, host.planning_prompt)
    if config.calls == "separate":
        return False
    return None if any(apart) or host.tools else True


def dearest_token(config: "Team") -> float | None:
    """What a token costs at most; none where a model has no price, or where nobody knows it."""
    from replan.spending.prices import price_of  # noqa: PLC0415 - the check without a team is light

    dearest = 0.0
    for model in config.chat_models.values():
        name = model if isinstance(model, str) else ""
        price = price_of((name, name.partition(":")[2]), config.prices) if name else None
        if model is not None and price is None:
            return None
        dearest = max(dearest, price.input, price.output) if price is not None else dearest
    foreign = (_calls_of_try(each, {}) for each in config.specialists if each.chat_model is None)
    return None if None in foreign else dearest / 1_000_000


def _calls_of_reply(model: Any, retries: Mapping[str, int]) -> int:
    if is_built_in([model]):
        return calls_of_reply(0)
    return calls_of_reply(
        retries.get(model, USUAL_RETRIES) if isinstance(model, str) else USUAL_RETRIES
    )


def _calls_of_try(specialist: "Specialist", retries: Mapping[str, int]) -> int | None:
    """Model calls of one try; none where nobody can know: of tools, graphs and functions."""
    if specialist.chat_model is not None and not specialist.tools:
        return calls_of_try(_calls_of_reply(specialist.chat_model, retries))
    # A ready one, or a function, or the object that it belongs to, may say how many it makes.
    does = specialist.use or getattr(specialist.run, "__self__", specialist.run)
    return getattr(does, "model_calls", None)


def bounds(team: KnownTeam) -> dict[str, JsonValue]:
    """What bounds a run of a team whose plan nobody knows yet."""
    limits = team.limits.model_dump(mode="json")
    calls: JsonValue = {"worst": team.limits.max_model_calls}
    return {"model_calls": calls, "limits": limits, "approval": team.approval}


def bound_lines(team: KnownTeam) -> list[str]:
    """What bounds a run of a team whose plan nobody knows yet, in lines; see `bounds`."""
    limits = team.limits
    lines = [
        f"model calls: at most {limits.max_model_calls}",
        f"rounds: at most {limits.max_rounds}, of at most {limits.max_steps} steps in all",
        f"steps at once: at most {limits.max_parallel_steps}",
    ]
    bounds = {
        "tokens": limits.max_tokens,
        "cost": limits.max_cost,
        "seconds": limits.max_seconds,
    }
    lines += [
        f"{name}: no limit" if bound is None else f"{name}: at most {bound:g}"
        for name, bound in bounds.items()
    ]
    if team.approval != "never":
        lines.append(f"approval: {team.approval}")
    return lines
