"""Read a team file: a team in YAML, with the fields of the Python configuration."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from replan.errors import ConfigurationError, FieldMistake, TeamFileError
from replan.graph.config import MultiAgentConfig
from replan.team.building import config_of
from replan.team.mistakes import complain, complaint_of
from replan.team.named_models import TeamModels
from replan.team.rules import broken_rules
from replan.team.sections import HostSection, ModelSection, TeamSection
from replan.team.surroundings import Surroundings, as_sentence, folder_of
from replan.team.yaml_source import Where, YamlSource, read_yaml

LARGEST = 200_000
_HOST_MODELS = tuple(name for name in HostSection.model_fields if name.endswith("_model"))


@dataclass(frozen=True, kw_only=True)
class TeamFile:
    """A team file that was read: `build_graph(team.config, models=team.models)` makes its graph.

    Attributes:
        path: The file.
        config: The team.
        models: Builds the models that the team names.
    """

    path: Path
    config: MultiAgentConfig
    models: TeamModels

    def with_model(self, model: str | None = None, base_url: str | None = None) -> "TeamFile":
        """Give the team with another model for all that its host does.

        Args:
            model: A name under `models`, or a name such as `openai:gpt-...`; none: as it is.
            base_url: The server for models that have none of their own in the file.
        """
        config = self.config
        if model is not None:
            others = dict.fromkeys(_HOST_MODELS)
            host = replace(config.host, **{**others, "tool_calling_model": model})
            config = replace(config, host=host)
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
        environment: Where the keys of models stand.
        directory: The folder that specialists may read and write, in the place of the file's own
            `workspace`.
        out: The folder for reports of the local team; else the same.
        imports: False leaves the functions alone: the team can be looked at, but not run.

    Raises:
        TeamFileError: The file has mistakes; the error tells all of them with their mends.
    """
    source = read_yaml(_text_of(path))
    content = _mapping(source.value)
    if not content:
        raise TeamFileError(path, source.mistakes or [_no_team(source)])
    folder = folder_of(path)
    surroundings = Surroundings(
        folder=folder,
        workspace=directory or (folder / _workspace(content)).resolve(),
        out=out,
        models=frozenset(_mapping(content.get("models"))),
        imports=imports,
    )
    try:
        team = TeamSection.model_validate(content, strict=True, context=surroundings)
    except ValidationError as error:
        found = [complaint_of(each, source) for each in error.errors(include_url=False)]
        raise _all_mistakes(path, source, found) from None
    if source.mistakes or any(broken_rules(source)):
        raise _all_mistakes(path, source, [])
    models = TeamModels(
        path=path,
        source=source,
        named=cast("Mapping[str, ModelSection]", team.models),
        uses=dict(_uses(content)),
        environment=environment,
    )
    try:
        return TeamFile(path=path, config=config_of(team, surroundings), models=models)
    except ConfigurationError as error:
        raise _misfit(path, source, error) from error


def _text_of(path: Path) -> str:
    try:
        if not path.is_file():
            mend = "Check the path, or write a team with `replan init`."
            _refuse(path, "unreadable", "There is no such file.", mend)
        content = path.read_bytes() if path.stat().st_size <= LARGEST else None
    except OSError as error:
        reason = f"The file cannot be read: {error.strerror}."
        _refuse(path, "unreadable", reason, "Check its name and its permissions.")
    if content is None:
        mend = "Keep long prompts in files of their own."
        _refuse(path, "too_large", f"The file is larger than {LARGEST:,} bytes.", mend)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        _refuse(path, "not_utf8", "The file is not UTF-8.", "Save it as UTF-8.", line)


def _refuse(path: Path, code: str, reason: str, mend: str, line: int = 1) -> NoReturn:
    mistake = FieldMistake(line=line, column=1, code=code, reason=reason, mend=mend)
    raise TeamFileError(path, [mistake]) from None


def _no_team(source: YamlSource) -> FieldMistake:
    if not source.value:
        mend = "Write a team; `replan init` gives one to start from."
        return complain(source, (), "empty", "The file has no team in it.", mend)
    mend = "Begin with fields such as host: and specialists:."
    return complain(source, (), "wrong_type", "A team file must have fields.", mend)


def _workspace(content: Mapping[str, Any]) -> str:
    given = content.get("workspace")
    return given if isinstance(given, str) and "\0" not in given else ""


def _mapping(given: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", given) if isinstance(given, dict) else {}


def _uses(content: Mapping[str, Any]) -> Iterator[tuple[str, Where]]:
    """Where names of models stand; of a name that stands twice, the last one is told."""
    for index, specialist in enumerate(content["specialists"]):
        if "chat_model" in specialist:
            yield specialist["chat_model"], ("specialists", index, "chat_model")
    for name in _HOST_MODELS:
        if name in content["host"]:
            yield content["host"][name], ("host", name)


def _all_mistakes(path: Path, source: YamlSource, found: list[FieldMistake]) -> TeamFileError:
    """Put all mistakes in the order of the file, and tell one of each field."""
    mistakes: dict[object, FieldMistake] = {}
    for mistake in (*source.mistakes, *broken_rules(source), *found):
        mistakes.setdefault(mistake.field or (mistake.line, mistake.column), mistake)
    return TeamFileError(path, sorted(mistakes.values(), key=lambda each: (each.line, each.column)))


def _misfit(path: Path, source: YamlSource, error: ConfigurationError) -> TeamFileError:
    parts = re.findall(r"\w+", error.field)
    where = tuple(int(part) if part.isdigit() else part for part in parts)
    reason = as_sentence(error.problem)
    return TeamFileError(path, [complain(source, where, "bad_value", reason, error.mend)])
