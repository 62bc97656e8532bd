"""A specialist that is a pipeline of phases and sub-threads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import TypeAdapter, ValidationError

from replan.base.declared.part import Surroundings
from replan.base.errors import ConfigurationError
from replan.team.chats import Chats
from replan.team.fields.code import PipelineAgent
from replan.team.fields.models import Model
from replan.team.kinds.member import Giving

if TYPE_CHECKING:
    from replan.pipelines.phases.agent_and_handler import BaseAgent
    from replan.ports.specialist_port import SpecialistPort


class Pipeline(Giving):
    """A specialist that is a pipeline.

    Attributes:
        pipeline: The class of the pipeline's main agent, a subclass of BaseAgent; in a file as
            module:Class.
        unit_model: The chat model that its handlers ask, or its name; none if they ask no model.
    """

    marks: ClassVar[tuple[str, ...]] = ("pipeline",)

    pipeline: PipelineAgent | None = None
    unit_model: Model | None = None

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build what walks its phases."""
        from replan.pipelines.turns.building import built_pipeline
        from replan.specialists.pipeline import PipelineSpecialist

        model = self.unit_model
        return PipelineSpecialist(
            # Its thread says what was done, so it may always be sent again.
            card=self.card_with("pure"),
            pipeline=built_pipeline(cast("type[BaseAgent]", self.pipeline), self.name),
            chat=None if model is None else chats.of(model, f"{location}.unit_model"),
            shape=self.shape,
        )


_FORM = "Write module:Class, as in painting:RoomAgent."


def pipeline_named(reference: str, folder: Path) -> "type[BaseAgent]":
    """Import the class of a pipeline's main agent by `module:Class`, as a file does."""
    try:
        read = TypeAdapter[Any](PipelineAgent)
        found = read.validate_python(reference, context=Surroundings(folder=folder.resolve()))
    except ValidationError as error:
        first = error.errors()[0]
        is_named = first["type"] != "bad_reference"
        fix = first.get("ctx", {}).get("fix", _FORM) if is_named else _FORM
        problem = first["msg"].rstrip(".")
        raise ConfigurationError("pipeline", reference, problem, fix) from error
    return cast("type[BaseAgent]", found)
