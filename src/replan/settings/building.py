"""Make the Python configuration from the sections of a team file."""

from typing import Any

from replan.graph.config import Host, MultiAgentConfig, Specialist
from replan.plan.model import Value
from replan.settings.sections import SpecialistSection, TeamSection
from replan.settings.surroundings import Surroundings

_APART = frozenset({"host", "models", "specialists", "workspace"})


def config_of(team: TeamSection, surroundings: Surroundings) -> MultiAgentConfig:
    """Make the configuration; what the file leaves out is as it is in Python.

    Raises:
        ConfigurationError: A field of the configuration cannot be used.
    """
    config = MultiAgentConfig(
        host=Host(**_given(team.host)),
        specialists=[_specialist(section, surroundings) for section in team.specialists],
        workspace=surroundings.workspace,
        **_given(team, without=_APART),
    )
    config.check()
    return config


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
        run=port.run,
    )
