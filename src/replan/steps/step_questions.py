"""The questions of one step at one specialist: known before it begins, on record when it asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from replan.errors import QuestionError
from replan.events.emitter import Emitter
from replan.events.types import InputRequested
from replan.ports.ask_user import Asker
from replan.ports.journal import Journal
from replan.services import Services
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.questions import Question, questions_of
from replan.state.usage import TokenCount
from replan.steps.board import QUESTIONS, Board
from replan.values import restored

ANSWERS = "answer/"
"""What the notes of a run begin with that hold answers; the question's key follows."""


@dataclass
class StepQuestions:
    """What a step asked so far, and how it asks more.

    Attributes:
        known: Its questions, in their order, with the answers that there are.
    """

    run_id: str
    step_id: int
    specialist: str
    round: int
    most: int
    board: Board
    services: Services
    known: tuple[Question, ...]

    @classmethod
    async def of(
        cls, step_id: int, specialist: str, state: EnhancedState, board: Board, services: Services
    ) -> Self:
        """Gather what the state and the journal know."""
        run_id = state.get("run_id", "")
        stated = questions_of(state.get("questions", {}), step_id, specialist)
        known = {question.key: question for question in stated}
        for key, value in (await board.recall_questions(services.journal, run_id)).items():
            if key.startswith(f"{QUESTIONS}{step_id}/{specialist}/"):
                question: Question = restored(Question, value)
                known.setdefault(question.key, question)
        if any(question.is_open for question in known.values()):
            known = await _with_answers(known, services.journal, run_id)
        return cls(
            run_id=run_id,
            step_id=step_id,
            specialist=specialist,
            round=state.get("current_round", 1),
            most=settings_of(state).limits.max_questions,
            board=board,
            services=services,
            known=tuple(sorted(known.values(), key=lambda question: question.ordinal)),
        )

    def asker(self) -> Asker:
        """What one try asks with."""
        return Asker(self.step_id, self.specialist, known=self.known, new=self._new)

    async def recorded(
        self, asker: Asker, attempt: int, used: TokenCount, emitter: Emitter
    ) -> list[Question]:
        """Note what a try asked, tell of what is new, and give it for the state."""
        noted = await self.services.journal.notes(self.run_id, QUESTIONS)
        asked = [question.replace(round=self.round) for question in asker.asked]
        for question in asked:
            if QUESTIONS + question.key in noted:
                continue
            note: dict[str, JsonValue] = question.model_dump(mode="json")
            await self.services.journal.note(self.run_id, QUESTIONS + question.key, note)
            emitter.stream(
                InputRequested,
                step_id=self.step_id,
                specialist=self.specialist,
                attempt=attempt,
                question=question,
            )
        return [asked[0].replace(usage=used), *asked[1:]]

    def _new(self, question: Question) -> Question:
        if next(self.board.questions) > self.most:
            raise QuestionError(
                f"The limit max_questions={self.most} is reached: the run asks no more questions."
            )
        return question.replace(asked_at=self.services.clock())


async def _with_answers(
    known: Mapping[str, Question], journal: Journal, run_id: str
) -> dict[str, Question]:
    """Fill in answers that came, and that the state does not have yet."""
    noted = await journal.notes(run_id, ANSWERS)
    return {
        key: question.replace(answer=noted[ANSWERS + key])
        if question.is_open and ANSWERS + key in noted
        else question
        for key, question in known.items()
    }
