"""What a team file holds: a team, and models with its own names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr

from replan.base.declared.part import Row
from replan.base.declared.yaml_source import YamlSource, each_once_by_place, file_schema
from replan.base.errors import Mistake, TeamFileError, UsageError
from replan.base.values import Value
from replan.ports.run_book import TeamIdentity
from replan.team.chats import Fallback, with_fallbacks
from replan.team.fields.models import ModelName
from replan.team.fields.texts import NewModel, ServerUrl, VariableName
from replan.team.team import Team


class Use(Enum):
    """What a setting of a model is for: how it is called, or how it replies."""

    CALL = "call"
    REPLY = "reply"


class NamedModel(Value):
    """A model with its own name.

    Attributes:
        model: Which model: openai:NAME, PROVIDER:NAME, offline, or with a base_url NAME.
        base_url: A server that speaks the OpenAI protocol. Without it: OPENAI_BASE_URL of the
            environment, else OpenAI itself.
        api_key_env: The name of the environment variable that holds the key, never the key.
            Without it: OPENAI_API_KEY, and none for a base_url of its own.
        temperature: How freely it words its replies.
        top_p: The share of likely words that it chooses from.
        max_tokens: The longest reply, in tokens.
        seed: Makes replies repeatable, if it can.
        timeout: Seconds to wait for the next bytes of a reply.
        max_retries: Further attempts after busy or failing servers.
        streaming: Whether the server can stream.
        fallback: Models that are asked where this one gives no reply, one after another.
    """

    model: str = Field(min_length=1, examples=["openai:gpt-5-mini", "offline"])
    base_url: ServerUrl | None = Field(default=None, examples=["http://127.0.0.1:8000/v1"])
    api_key_env: VariableName | None = Field(default=None, examples=["OPENAI_API_KEY"])
    temperature: Annotated[float | None, Use.REPLY] = Field(default=None, ge=0, le=2)
    top_p: Annotated[float | None, Use.REPLY] = Field(default=None, gt=0, le=1)
    max_tokens: Annotated[int | None, Use.REPLY] = Field(default=None, ge=1)
    seed: Annotated[int | None, Use.REPLY] = None
    timeout: Annotated[float | None, Use.CALL] = Field(default=None, gt=0)
    max_retries: Annotated[int | None, Use.CALL] = Field(default=None, ge=0)
    streaming: Annotated[bool | None, Use.CALL] = None
    fallback: Row[ModelName] = Field(default=(), examples=[["openai:gpt-5-mini"]])

    def given(self, use: Use) -> dict[str, Any]:
        """The settings of a use that are given, by their names."""
        fields = type(self).model_fields
        names = [name for name in fields if use in fields[name].metadata]
        return {name: getattr(self, name) for name in names if name in self.model_fields_set}


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that a team was read from; where a team is makes no difference to it."""

    identity: TeamIdentity
    path: Path
    source: YamlSource | None = None  # None: what is wrong now is not in the file

    def refusal(self, mistakes: Iterable[Mistake]) -> UsageError | None:
        """Return the error for mistakes that name fields, with their places in the file."""
        if self.source is None:
            return None
        places = map(partial(_placed, self.source), mistakes)
        return TeamFileError(self.path, each_once_by_place(places))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


def _placed(source: YamlSource, mistake: Mistake) -> Mistake:
    parts = re.findall(r"[^.\[\]]+", mistake.field)
    where = tuple(int(part) if part.isdigit() else part for part in parts)
    line, column = source.position_of(where)
    return replace(mistake, line=line, column=column)


class FileTeam(Team):
    """A team of specialists with a host that plans for them.

    Attributes:
        models: Models by names of your own, for the host and the specialists.
    """

    models: Mapping[NewModel, NamedModel] = Field(default_factory=dict[str, NamedModel])

    _origin: Origin | None = PrivateAttr(default=None)

    def with_origin(self, origin: Origin) -> Self:
        """Return the same team, known by its file, with the places of its mistakes."""
        self._origin = origin
        return self

    @property
    def identity(self) -> TeamIdentity:
        """What its runs are known to be done by, wherever they are continued."""
        return self._origin.identity if self._origin else super().identity

    def named_model(self, name: str) -> Any:
        """Return the model of a name, with those that the file gives in its place."""
        names = with_fallbacks(name, {model: one.fallback for model, one in self.models.items()})
        return Fallback(*names) if len(names) > 1 else name

    def refusal(self, mistakes: Sequence[Mistake]) -> UsageError:
        """Return the error for what was found when it was built, with the places in its file."""
        placed = self._origin and self._origin.refusal(mistakes)
        return placed or super().refusal(mistakes)


def team_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that team files keep."""
    schema = file_schema(FileTeam)
    for definition in (schema, *schema["$defs"].values()):
        definition["title"] = f"Replan {definition['title'].removeprefix('File').lower()}"
    return schema


SCHEMA_NAME = "team.schema.json"
DEFAULT_TEAM = Path(__file__).with_name("default_team.yaml")
"""The team where none is named."""


def starter_team() -> str:
    """Return a commented team file that works as it is, and names `team.schema.json` next to it."""
    return files("replan.team").joinpath("starter_team.yaml").read_text("utf-8")
