"""Make the Python configuration from the sections of a team file."""

from typing import Any

from replan.errors import UnpricedModelError
from replan.graph.config import Host, MultiAgentConfig, Specialist
from replan.plan.model import Value
from replan.ports.prices import price_of
from replan.state.limits import Price
from replan.team.sections import SpecialistSection, TeamSection
from replan.team.surroundings import Surroundings

_APART = frozenset({"host", "models", "specialists", "workspace", "prices"})
_HOST_MODELS = ("tool_calling_model", "thinking_model", "planning_model", "feedback_model")


def config_of(team: TeamSection, surroundings: Surroundings) -> MultiAgentConfig:
    """Make the configuration; what the file leaves out is as it is in Python.

    Raises:
        ConfigurationError: A field of the configuration cannot be used.
    """
    config = MultiAgentConfig(
        host=Host(**_given(team.host)),
        specialists=[_specialist(section, surroundings) for section in team.specialists],
        workspace=surroundings.workspace,
        prices=_prices(team),
        **_given(team, without=_APART),
    )
    config.check()
    _check_prices(config, team)
    return config


def _prices(team: TeamSection) -> dict[str, Price]:
    """The prices of the file; a model with a name of its own has that of what it stands for."""
    own = {
        name: price_of(_names(section.model), team.prices) for name, section in team.models.items()
    }
    return {name: price for name, price in own.items() if price is not None} | team.prices


def _check_prices(config: MultiAgentConfig, team: TeamSection) -> None:
    """Refuse to bound money that nobody can count, where the file says so.

    Raises:
        UnpricedModelError: A model of the file has no price, and some `max_cost` is set.
    """
    budgets = (config.limits.whole, config.limits.per_step, *(s.limits for s in team.specialists))
    if all(budget.max_cost is None for budget in budgets):
        return
    named = {f"host.{name}": getattr(team.host, name) for name in _HOST_MODELS}
    for index, section in enumerate(team.specialists):
        named[f"specialists[{index}].chat_model"] = section.chat_model
    for field, name in named.items():
        if name is not None and price_of(_names(name), config.prices) is None:
            raise UnpricedModelError(field, name)


def _names(model: str) -> tuple[str, str]:
    return model, model.partition(":")[2]


def _given(section: Value, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    names = section.model_fields_set - without
    return {name: getattr(section, name) for name in type(section).model_fields if name in names}


def _specialist(section: SpecialistSection, surroundings: Surroundings) -> Specialist:
    if section.local is None:
        return Specialist(**_given(section))
    port = surroundings.local_team[section.local]
    card = port.card
    return Specialist(
        name=section.name or card.name,
        intended_use=section.intended_use or card.intended_use,
        capabilities=section.capabilities or card.capabilities,
        effects=section.effects or card.effects,
        run=port.run,
        limits=section.limits,
    )
