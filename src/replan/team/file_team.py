"""What a team file holds: a team, and models with its own names."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr

from replan.declared.fields import Row
from replan.declared.files import file_schema
from replan.declared.placing import Origin
from replan.errors import Mistake, UsageError
from replan.ports.run_book import TeamIdentity
from replan.team.fallback import Fallback, with_fallbacks
from replan.team.fields.models import ModelName
from replan.team.fields.texts import NewModel, ServerUrl, VariableName
from replan.team.team import Team
from replan.values import Value


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
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    timeout: float | None = Field(default=None, gt=0)
    max_retries: int | None = Field(default=None, ge=0)
    streaming: bool | None = None
    fallback: Row[ModelName] = Field(default=(), examples=[["openai:gpt-5-mini"]])


class FileTeam(Team):
    """A team of specialists with a host that plans for them.

    Attributes:
        models: Models by names of your own, for the host and the specialists.
    """

    models: Mapping[NewModel, NamedModel] = Field(default_factory=dict[str, NamedModel])

    _origin: Origin | None = PrivateAttr(default=None)
    _identity: TeamIdentity | None = PrivateAttr(default=None)

    def from_file(self, identity: TeamIdentity, origin: Origin | None) -> Self:
        """Return the same team, known by its file, with the places of its mistakes."""
        self._origin, self._identity = origin, identity
        return self

    @property
    def identity(self) -> TeamIdentity:
        """What its runs are known to be done by, wherever they are continued."""
        return self._identity or super().identity

    def named_model(self, name: str) -> Any:
        """Return the model of a name, with those that the file gives in its place."""
        names = with_fallbacks(name, {each: one.fallback for each, one in self.models.items()})
        return Fallback(*names) if len(names) > 1 else name

    def refusal(self, mistakes: Sequence[Mistake]) -> UsageError:
        """Return the error for what was found when it was built, with the places in its file."""
        return self._origin.refusal(mistakes) if self._origin else super().refusal(mistakes)


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
