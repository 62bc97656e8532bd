"""`user_input`: wait for a person's answers when nothing else can go on."""

from typing import cast

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from pydantic import JsonValue

from replan.errors import InputError
from replan.nodes.step_questions import ANSWERS
from replan.ports.questions import path_of_step
from replan.ports.services import Services
from replan.state.enhanced import EnhancedState, rounds_of
from replan.state.questions import Question, read_answers
from replan.state.waiting import open_questions


async def user_input(state: EnhancedState, *, services: Services) -> EnhancedState:
    """Take the answers that are on record, else ask; each answer is on record before it is used."""
    run_id, asked = state.get("run_id", ""), open_questions(state)
    by_key = {question.key: question for question in asked}
    noted = await services.journal.notes(run_id, ANSWERS)
    # An answer that came just before the process was killed: LangGraph has forgotten it.
    known = {key: noted[ANSWERS + key] for key in by_key if ANSWERS + key in noted}
    now = services.clock()
    answers = {
        key: await services.journal.note(run_id, ANSWERS + key, answer)
        for key, answer in _given(asked, known).items()
    }
    return {
        "questions": {key: by_key[key].answered(answer, now) for key, answer in answers.items()},
        # The round that only asked is given back.
        "max_rounds": rounds_of(state) + 1,
    }


def _given(asked: tuple[Question, ...], known: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Ask until there is an answer that can be taken; what is known needs no other."""
    # Steps that run graphs may ask at once, and each graph counts its own steps from 1.
    problem, path = "", path_of_step()
    shown = [question.replace(key=path + question.key) for question in asked]
    told = [question.model_dump(mode="json", exclude={"usage", "round"}) for question in shown]
    while True:
        try:
            given = interrupt({"questions": told, "problem": problem})
        except GraphInterrupt:
            if known:
                return known
            raise
        try:
            answers = read_answers(cast("object", given), shown)
            return {**{key.removeprefix(path): each for key, each in answers.items()}, **known}
        except InputError as error:
            problem = str(error)
