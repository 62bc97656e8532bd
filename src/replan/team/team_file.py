"""Read a team file: a team in YAML, with the fields that it has in Python."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from replan.base.declared.mistakes import mistake_at
from replan.base.declared.part import tell_old_name
from replan.base.declared.yaml_source import YamlSource, folder_of, read_part, read_text, read_yaml
from replan.base.errors import Mistake, TeamFileError, UnpricedModelError, mistake
from replan.base.values import fields_in
from replan.models.spending.scopes import price_of
from replan.ports.run_book import DEFAULT, TeamIdentity, digest_of
from replan.team.chats import each_model
from replan.team.fields.given import TeamSurroundings
from replan.team.file_team import DEFAULT_TEAM, FileTeam, Origin
from replan.team.host import MODELS, Host
from replan.team.named_models import TeamModels

_HOME = "Check the path, or write a team with `replan init`."


@dataclass(frozen=True, kw_only=True)
class TeamFile:
    """A team file that was read: `build_graph(team.config, models=team.models)` makes its graph.

    Attributes:
        path: The file.
        config: The team.
        models: Builds the models that the team names.
    """

    path: Path
    config: FileTeam
    models: TeamModels

    @property
    def identity(self) -> TeamIdentity:
        """What its runs are known to be done by: its name is its own, else that of its file."""
        return self.config.identity

    def with_model(self, model: str | None = None, base_url: str | None = None) -> "TeamFile":
        """Return the team with another model for everything that its host does.

        Args:
            model: A name under `models`, or a name such as `openai:gpt-...`; none: as it is.
            base_url: The server for models without their own in the file.
        """
        config = self.config
        if model is not None and not config.is_direct:
            named = config.named_model(model)
            host = config.host.replace(**{**dict.fromkeys(MODELS), "model": named})
            # What is wrong with this model is not in the file. The folders are known where
            # the file is read, though it may not name them.
            folders = {"workspace": config.workspace, "out": config.out}
            identity = self.identity
            changed = identity.replace(digest=digest_of(f"{identity.digest} {model}"))
            config = config.replace(host=host, **folders)
            config = config.with_origin(Origin(changed, self.path))
        models = replace(self.models, base_url=base_url or self.models.base_url)
        return replace(self, config=config, models=models)


def read_team_file(
    path: Path,
    environment: Mapping[str, str],
    *,
    directory: Path | None = None,
    out: Path | None = None,
    imports: bool = True,
) -> TeamFile:
    """Read a team file.

    Functions that it names are imported, which runs their modules; keys are looked up only when a
    model is built.

    Args:
        path: The file.
        environment: The environment variables, which hold the keys of models.
        directory: The folder that specialists may read and write, in place of the file's own
            `workspace`.
        out: The folder for the files that steps make; else the same.
        imports: False does not import the functions: the team can be inspected, but not run.

    Raises:
        TeamFileError: The file has mistakes; the error lists all of them with their fixes.
    """
    text = read_text(path, TeamFileError, _HOME)
    if path.suffix == ".py":
        raise TeamFileError(path, [_is_python(path)])
    source = _under_new_names(read_yaml(text))
    content = fields_in(source.value)
    if not content:
        raise TeamFileError(path, source.mistakes or [_no_team(source)])
    folder = folder_of(path)
    surroundings = TeamSurroundings(
        folder=folder,
        workspace=directory or (folder / _workspace(content)).resolve(),
        out=out,
        models=frozenset(fields_in(content.get("models"))),
        fallbacks=_fallbacks(content),
        imports=imports,
    )
    config = read_part(source, FileTeam, surroundings, partial(TeamFileError, path))
    is_default = path == DEFAULT_TEAM
    name = config.name if is_default or "name" in config.model_fields_set else path.stem
    known_by = DEFAULT if is_default else str(path.absolute())
    identity = TeamIdentity.of(name, text, known_by, config.currency)
    config = _priced(config).with_origin(Origin(identity, path, source))
    if unpriced := _unpriced(config):
        raise config.refusal(unpriced)
    models = TeamModels(named=config.models, environment=environment)
    return TeamFile(path=path, config=config, models=models)


def read_served_file(path: Path, environment: Mapping[str, str]) -> TeamFile:
    """Read a team file to serve it; of the default team the environment says folders and model.

    Raises:
        TeamFileError: The file has mistakes.
    """
    if path != DEFAULT_TEAM:
        return read_team_file(path, environment)
    folder, out = Path(environment.get("REPLAN_DIR", ".")), environment.get("REPLAN_OUT")
    read = read_team_file(path, environment, directory=folder, out=Path(out) if out else None)
    model, base_url = environment.get("REPLAN_MODEL"), environment.get("REPLAN_BASE_URL")
    return read.with_model(model or None, base_url or None)


def _is_python(path: Path) -> Mistake:
    fix = (
        "Name its functions in a team file, which is YAML: "
        f"run: {path.stem}:FUNCTION; `replan init` writes one. A team in Python runs in Python: "
        "replan.run_sync(team, TASK)."
    )
    return mistake("", path.name, "This is Python, not a team file.", fix, "python", 1, 1)


def _no_team(source: YamlSource) -> Mistake:
    code, reason = "empty", "The file is empty."
    fix = "Write a team; `replan init` writes a starter file."
    if source.value:
        code, reason = "wrong_type", "A team file must have fields."
        fix = "Begin with fields such as host: and specialists:."
    return mistake_at((), source.value, reason, fix, code, source)


def _under_new_names(source: YamlSource) -> YamlSource:
    """Take the old names of fields for the new ones, where they are."""
    for old, new in Host.old_names.items():
        host = fields_in(fields_in(source.value).get("host"))
        if old in host and new not in host:
            tell_old_name(f"The field {old} of a host in a team file", new)
            source = source.renamed(("host", old), new)
    return source


def _workspace(content: Mapping[str, Any]) -> str:
    workspace = content.get("workspace")
    return workspace if isinstance(workspace, str) and "\0" not in workspace else ""


def _fallbacks(content: Mapping[str, Any]) -> dict[str, list[str]]:
    models = fields_in(content.get("models"))
    fallbacks = {name: fields_in(section).get("fallback") for name, section in models.items()}
    # What is not a list of names is reported where it is read.
    return {
        name: [item for item in cast("list[Any]", row) if isinstance(item, str)]
        for name, row in fallbacks.items()
        if isinstance(row, list)
    }


def _priced(team: FileTeam) -> FileTeam:
    """Give named models the prices of the models that they name."""
    prices = {name: price_of(_names(one.model), team.prices) for name, one in team.models.items()}
    known_prices = {name: price for name, price in prices.items() if price is not None}
    return team.replace(prices={**known_prices, **team.prices}) if known_prices else team


def _unpriced(team: FileTeam) -> list[Mistake]:
    """The models without a price, if the file bounds money."""
    budgets = (
        team.limits.whole,
        team.limits.per_step,
        *(specialist.limits for specialist in team.specialists),
    )
    if all(budget.max_cost is None for budget in budgets):
        return []
    return [
        UnpricedModelError(field, name).mistakes[0]
        for field, name in each_model(team.chat_models)
        if price_of(_names(name), team.prices) is None
    ]


def _names(model: str) -> tuple[str, str]:
    return model, model.partition(":")[2]
