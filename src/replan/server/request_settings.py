"""The settings of a request: the owner of the run, and limits no looser than the team's."""

from replan.server.callers.identity import Identity
from replan.server.problems import FieldProblem, bad_request, shown
from replan.server.served_teams import ServedTeams, team_services
from replan.services import Services
from replan.state.limits import RunSettings
from replan.state.tightening import tightened
from replan.values import Value

_OWN_SETTINGS = ("tenant", "user")


def settings_for(
    served: ServedTeams, who: Identity, team: str, asked_for: RunSettings | None
) -> RunSettings | None:
    """The settings of a request, with the owner of the run; they loosen nothing.

    Raises:
        RefusedError: A setting is looser than the team's.
    """
    services = team_services(served.runtimes[team])
    if asked_for is not None:
        mistakes = _own_settings(asked_for)
        taken = tightened(services.settings, asked_for, services.open_to_clients)
        if mistakes := mistakes or _loosened(asked_for, taken):
            raise bad_request(mistakes)
    own = _whose(who, services)
    if not own:
        return asked_for
    return (asked_for or RunSettings()).replace(**own)


def _whose(who: Identity, services: Services) -> dict[str, str]:
    """Whose facts and knowledge a run uses: those of who calls, else those of the team."""
    is_needed = services.remembers and not services.settings.user
    own = {"tenant": who.tenant, "user": who.person if is_needed else who.user}
    return {
        name: each
        for name, each in own.items()
        if each and each != getattr(services.settings, name)
    }


def _own_settings(asked_for: RunSettings) -> list[FieldProblem]:
    return [
        FieldProblem(
            field=f"settings.{name}",
            value=shown(getattr(asked_for, name)),
            problem="the token says whose run it is",
            fix="Leave it out.",
            code="looser",
        )
        for name in _OWN_SETTINGS
        if name in asked_for.model_fields_set
    ]


def _loosened(asked_for: Value, taken: Value, place: str = "settings") -> list[FieldProblem]:
    """The settings that are looser than the team's, given in `taken`."""
    found = list[FieldProblem]()
    for name in sorted(asked_for.model_fields_set):
        wanted, kept = getattr(asked_for, name), getattr(taken, name)
        if isinstance(wanted, Value):
            found += _loosened(wanted, kept, f"{place}.{name}")
        elif wanted != kept:
            found.append(
                FieldProblem(
                    field=f"{place}.{name}",
                    value=shown(wanted),
                    problem="this is looser than the team's, and a request can only tighten",
                    fix=f"Leave it out, or give {kept!r} or less.",
                    code="looser",
                )
            )
    return found
