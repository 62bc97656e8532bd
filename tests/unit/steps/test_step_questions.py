"""The questions of a step: gathered from state and log, and told of once."""

from datetime import UTC, datetime

import pytest

from replan import ExecutionContext, Limits, PlanStep, Question, QuestionError, RunSettings
from replan.events.emitter import Emitter, Hooks
from replan.ports.ask_user import Waiting
from replan.state.usage import TokenCount
from replan.steps.board import Board
from replan.steps.on_record import Keys
from replan.steps.step_record import StepRecord
from replan.storage.memory_log import memory_log

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = RunSettings(limits=Limits(max_questions=2))


def state(*questions):
    return {
        "run_id": "r",
        "current_round": 3,
        "settings": SETTINGS,
        "questions": {question.key: question for question in questions},
    }


def asked(number=1, **fields):
    fields = {"text": "Which?", **fields}
    return Question(key=f"1/a/{number}", step_id=1, specialist="a", **fields)


def ask(asker, text="Which?"):
    with pytest.raises(Waiting):
        asker.ask(text, "question", None)


class Story:
    """A step that asks, try after try, on one log."""

    def __init__(self, services):
        self.events = []
        self.services = services(log=memory_log())
        self.emitter = Emitter(self.events.append, Hooks().of("r"), "r", 3)

    async def of(self, given):
        context = ExecutionContext(
            task_description="Do it",
            plan_step=PlanStep(id=1, description="Do it"),
            run_id="r",
            round=3,
            idempotency_key="k",
        )
        keys = Keys(result="result", attempt="attempt", idempotency="k", inputs={})
        record = StepRecord(context, "a", keys, Board(given), self.services, self.emitter)
        await record.recall()
        return record

    async def asks(self, given, *texts):
        questions = await self.of(given)
        asker = questions.asker()
        for text in texts:
            ask(asker, text)
        return await questions.asked(asker, 1, TokenCount(calls=4))


async def test_what_a_try_asked_is_noted_told_of_and_charged_once(services):
    story = Story(services)
    first, second = await story.asks(state(), "Which?", "Why?")
    assert (first.key, first.round, first.asked_at) == ("1/a/1", 3, NOON)
    assert (first.usage.calls, second.usage.calls) == (4, 0)
    assert [event.question.text for event in story.events] == ["Which?", "Why?"]
    noted = await story.services.log.notes("r", "question/")
    assert list(noted) == ["question/1/a/1", "question/1/a/2"]


async def test_a_question_of_a_try_that_was_cut_off_is_the_same_and_not_told_of_again(services):
    story = Story(services)
    await story.asks(state(), "Which?", "Why?")
    # The process was killed before the state had them; the tools ask in another order.
    why, which = await story.asks(state(), "Why?", "Which?")
    assert (why.key, which.key) == ("1/a/2", "1/a/1")
    assert len(story.events) == 2


async def test_an_answer_on_record_counts_though_the_state_does_not_have_it(services):
    story = Story(services)
    await story.services.log.note("r", "answer/1/a/1", "blue")
    questions = await story.of(state(asked()))
    assert questions.asker().ask("Which?", "question", None) == "blue"


async def test_the_state_goes_before_the_note_of_a_question(services):
    story = Story(services)
    await story.asks(state(), "Which?")
    questions = await story.of(state(asked(answer="blue")))
    assert questions.asker().ask("Which?", "question", None) == "blue"


async def test_the_questions_of_all_steps_count(services):
    story = Story(services)
    other = Question(key="2/a/1", step_id=2, specialist="a", text="Which?")
    questions = await story.of(state(other))
    asker = questions.asker()
    ask(asker)
    with pytest.raises(QuestionError, match="max_questions=2"):
        asker.ask("Why?", "question", None)
