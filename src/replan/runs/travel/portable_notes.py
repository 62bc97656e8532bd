"""The notes of a run that travels: those that become values are read before anything runs."""

from typing import Any, cast

from langchain_core.messages import AIMessage
from pydantic import JsonValue

from replan.models.transcript import BEGUN, CALL, ENDED, REPLY, ToolEnd, ToolRun
from replan.ports.journal import TOLD, RunRows
from replan.state.knowledge import Knowledge
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.session.context_fields import Path, Reading
from replan.steps.board import QUESTIONS
from replan.steps.kept import KEPT
from replan.steps.step_record import KNOWLEDGE
from replan.values import restored

_KINDS: dict[str, Any] = {
    QUESTIONS: Question,
    KNOWLEDGE: Knowledge,
    KEPT: SpecialistResult,
    REPLY: AIMessage,
}


def check_notes(rows: RunRows, path: Path, reading: Reading) -> None:
    """Read the notes as those will who need them; what is wrong with one is kept."""
    for place, (key, note) in enumerate(rows.notes):
        kind = _kind_of(key, note)
        if kind is not None:
            reading.value(kind, note, (*path, place, 1), restored, is_copied=True)


def _kind_of(key: str, note: JsonValue) -> Any:
    if key.startswith(CALL):
        ends = {BEGUN: ToolRun, ENDED: ToolEnd}
        return next((kind for end, kind in ends.items() if key.endswith(end)), None)
    if key.startswith(TOLD):
        # What a graph asked; of a warning there is a mark only.
        return Question if isinstance(note, dict) else None
    return cast("Any", next((kind for each, kind in _KINDS.items() if key.startswith(each)), None))
