"""A conversation at the terminal: each line is a message, an answer or a command."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import Any, cast

from pydantic import JsonValue

from replan.base.errors import InputError, ReplanError
from replan.base.texts.signs import harmless
from replan.cli.desk.dialogs import Desk, Quit, answer
from replan.cli.shared.process import GOOD, INCOMPLETE, INTERRUPTED, WAITING
from replan.cli.shared.site import Site
from replan.cli.talk.drawn_turn import DrawnTurn
from replan.cli.talk.lines import Interrupted, Lines
from replan.cli.talk.opening import Opened, new_session
from replan.cli.user_files.storage_location import now
from replan.log.report import RunReport
from replan.plan.model import TaskPlan
from replan.ports.session_store import VERSION
from replan.sessions.carried_run import RunCarrier, asks_of_run
from replan.sessions.request import how_to_answer
from replan.sessions.session_runs import name_from
from replan.sessions.session_work import JobWork
from replan.state.limits import RunSettings
from replan.state.questions import PLAN, Question
from replan.state.session.context import AgentContext, AgentResult
from replan.views.cells import counted, wrapped
from replan.views.live.reporters import Reporter
from replan.views.rendered import console_on, print_markdown

_WIDEST = 10_000
_CUT_OFF = "The newest answers were not stored, because their process ended. Their work continues."
_KILLED = (
    "The newest message was not answered, because its process ended. Send it again: recorded work "
    "is not repeated."
)
_OPEN = (
    "A question or a plan waits for your answer first. Press Enter to see it. /undo takes back the "
    "message that led to it, and /new begins another session."
)


@dataclass(frozen=True, kw_only=True)
class Talk:
    """The parts of a conversation that stay the same for all its sessions."""

    opened: Opened
    site: Site
    lines: Lines
    desk: Desk
    reporter: Callable[[], Reporter]  # shows one turn
    settings: RunSettings | None
    resume: Callable[[str], str]  # the command that continues a session; empty if none does


@dataclass
class Conversation:
    """A session, while this terminal has the conversation."""

    talk: Talk
    session_id: str
    context: AgentContext = field(init=False)  # the session as it is kept
    asks: tuple[Question, ...] = ()  # what waits for the person
    plan: str = ""  # the document of the plan that is under way
    job: Mapping[str, JsonValue] | None = None  # the status of the job
    draft: str = ""  # what the next line begins with
    _run: RunReport = field(init=False)  # the run that is under way
    _has_failed: bool = False

    def __post_init__(self) -> None:
        self._reset(self.session_id)

    @property
    def is_person(self) -> bool:
        """Whether a person is there to be asked."""
        return self.talk.site.asks

    @property
    def is_stopped(self) -> bool:
        """Whether work of this session was stopped, or failed, and can continue."""
        return self.context.current_stage == "stopped"

    @property
    def _shows_plan(self) -> bool:
        """Whether there is a plan to draw: that of a job or a pipeline alone is its one step."""
        return not self.talk.opened.partner.is_alone

    @property
    def _asks_in_words(self) -> bool:
        """Whether a job or a pipeline waits for an answer; its question is its newest message."""
        return self.context.current_stage == "question"

    @property
    def prompt(self) -> str:
        """What is before the next line."""
        if self.asks:
            return f"({len(self.asks)} open) > "
        return "(stopped) > " if self.is_stopped else "> "

    def show_work(self) -> None:
        """Draw the plan that is under way."""
        if self._shows_plan and self._run.planned and [ask.kind for ask in self.asks] != [PLAN]:
            reporter = self.talk.reporter()
            reporter.follow(self._run)
            reporter.pause(shows_plan=True)

    def begin_new(self) -> None:
        """Begin another session."""
        self._reset(new_session())

    async def say(self, text: str) -> None:
        """Send a message; while one question is open, the message is its answer."""
        if not self.is_person:
            await self._turn(read_piped_answer(text) if self.asks else text)
            return
        if self.asks and [ask.kind for ask in self.asks] != ["question"]:
            self.tell(_OPEN)
            return
        await self._turn(text)
        await self.answer()

    async def go_on(self) -> None:
        """Ask again what is open, or continue with what was stopped."""
        if self.is_stopped:
            await self._turn(None)
        elif not self.asks and self._asks_in_words:
            for asked in self.context.dialogue_history[-1:]:
                self.show(str(asked.content))
        await self.answer()

    async def answer(self) -> None:
        """Ask the open questions in place, until none is left or the person leaves one open."""
        left: set[str] = set()
        while self.is_person and (asks := [ask for ask in self.asks if ask.key not in left]):
            answers = await self._ask(asks)
            left |= {ask.key for ask in asks} - answers.keys()
            for key in answers:
                self._run = self._run.after_answer(key)
            if answers:
                await self._turn(answers)
        if self.asks and self.is_person:
            self.tell(left_open_text(self.asks))

    async def continue_cut_off(self) -> None:
        """Continue the newest turn, if the process that took it was killed."""
        cut_off = await self._cut_off() if self.is_person else None
        if isinstance(cut_off, dict):
            self.tell(_CUT_OFF)
            await self._turn(cut_off)
        elif cut_off is not None and not self.asks:
            self.tell(_KILLED)
            # The work continues once the person sends the same message again.
            self.draft = cut_off

    async def reload(self) -> None:
        """Read the stored session."""
        self._run = RunReport.begun("", now())
        await self._load()

    def exit_code(self) -> int:
        """Print how to continue, and return the exit code."""
        resume = self.talk.resume(self.session_id) if self.context.dialogue_history else ""
        if resume and self.talk.site.shows_all:
            self.talk.site.complain(f"continue with: {resume}")
        if self.asks or self._asks_in_words:
            return WAITING
        return INCOMPLETE if self._has_failed and not self.is_person else GOOD

    def tell(self, text: str) -> None:
        """Print something that is not an answer."""
        width = get_terminal_size().columns - 1 if self.talk.site.output.isatty() else _WIDEST
        self.talk.desk.say("".join(f"{line}\n" for line in wrapped(text.rstrip(), width)))

    def show(self, text: str) -> None:
        """Show a text in Markdown."""
        if self.talk.site.output.isatty():
            print_markdown(console_on(self.talk.site.output), text)
        else:
            self.tell(text)

    def _reset(self, session_id: str) -> None:
        self.session_id, self.asks, self.plan, self.draft = session_id, (), "", ""
        self.job = None
        self.context = AgentContext(session_id=session_id)
        self._run = RunReport.begun("", now())

    async def _ask(self, asks: Sequence[Question]) -> dict[str, JsonValue]:
        """Ask the person; questions that they leave open are not in the result."""
        answers: dict[str, JsonValue] = {}
        for ask in asks:
            self.talk.lines.clear()
            try:
                answers[ask.key] = ask.bound(await answer(ask, self.talk.desk))
            except Quit:
                continue
            except Interrupted as interrupted:
                if interrupted.code != INTERRUPTED:
                    raise
                break
        return answers

    async def _turn(self, turn_input: Any) -> None:
        """Take a turn, show it, and load the session that it has changed."""
        reporter = self.talk.reporter()
        turn = DrawnTurn(
            reporter,
            self._run.model_copy(update={"answer": ""}),
            is_asked_in_place=self.is_person,
            shows_plan=self._shows_plan,
        )
        if self._run.planned and self.is_person and self._shows_plan:
            reporter.follow(turn.run)
        try:
            await turn.take_turn(self._stream(turn_input, turn))
        except ReplanError as error:
            self._has_failed = True
            self.talk.site.complain(f"replan: {harmless(str(error))}")
        finally:
            self._close(turn)
        self._run = turn.run
        await self._load()
        self._tell(turn)
        if turn.stop.code not in (0, INTERRUPTED):
            raise Interrupted(turn.stop.code)

    def _turn_id(self, turn_input: Any) -> str:
        """The name of a turn: the same message again, after a kill, continues the same turn."""
        return name_from([self.context.session_metadata.get(VERSION, 0), turn_input])

    async def _cut_off(self) -> str | dict[str, JsonValue] | None:
        """The input of the newest turn, if the process that took it was killed.

        That is answers by their questions, or a message, which is empty if it is not known; None
        if no turn was killed.
        """
        opened, asks = self.talk.opened, {ask.key: ask for ask in self.asks}
        for turn, rows in await opened.answers_on_record(self.context):
            # The answers are on record, the turn is not stored.
            is_asked = rows.keys() <= asks.keys()
            bound = {key: asks[key].bound(each) for key, each in rows.items() if is_asked}
            for said in (bound, *rows.values()):
                if turn == opened.turn_named(self.session_id, self._turn_id(said)):
                    return said if isinstance(said, dict) else str(said)
        return await opened.killed_message(self.context)

    def _stream(self, turn_input: Any, turn: DrawnTurn) -> Any:
        return self.talk.opened.client.stream(
            self.session_id,
            turn_input,
            turn_id=self._turn_id(turn_input),
            settings=self.talk.settings,
            stop=turn.stop.asked,
            # What was stopped is abandoned for something new.
            new_request=self.is_stopped and turn_input is not None,
        )

    def _close(self, turn: DrawnTurn) -> None:
        stage = turn.result and turn.result.metadata.get("stage")
        if not self._shows_plan:
            turn.reporter.pause()
        elif stage in ("question", "approval") and self.is_person:
            turn.reporter.pause(shows_plan=stage == "question")
        else:
            turn.reporter.close()

    async def _load(self) -> None:
        """Read the stored session: its context, and the questions and the plan of its run."""
        opened = self.talk.opened
        try:
            self.context = await opened.client.export(self.session_id)
        except InputError:
            return  # its first turn is not kept yet
        carrier = RunCarrier(key=opened.key)
        run = carrier.carried(self.context)
        self.asks = asks_of_run(run)
        if (job := opened.partner.job) is not None:
            self.job = JobWork(job, carrier, stays=True).view(self.context, run)
        if opened.partner.is_alone:
            # What it asks is its newest message, and the next message answers it.
            self.asks = tuple(question for question in self.asks if question.is_decision)
            return
        plan: TaskPlan | None = None if run is None else run.state.get("current_plan")
        self.plan = "" if plan is None else plan.content
        if plan is None:
            self._run = RunReport.begun("", now())
        elif not self._run.planned and run is not None:
            self._run = RunReport.begun(run.state.get("run_id", ""), now())
            self._run = self._run.model_copy(update={"plan": plan, "outcome": "interrupted"})
        self._run = self._run.model_copy(update={"pending_questions": self.asks})

    def _tell(self, turn: DrawnTurn) -> None:
        """Report what no event has reported."""
        result = turn.result
        if result is None:
            if turn.stop.code:
                self.tell("stopped immediately; this message was not stored. Type it again.")
            return
        self._has_failed = not result.success or bool(result.metadata.get("degraded"))
        if result.error and not turn.is_told:
            self.talk.site.complain(f"replan: {harmless(result.error)}")
        if self.is_stopped:
            self.tell(self.stopped)
        elif self.asks:
            self._tell_asks(result)
        elif result.success and not turn.is_told:
            self.show(result.response)

    def _tell_asks(self, result: AgentResult) -> None:
        if not self.is_person:
            self.tell(result.response)
            how = how_to_answer(self.asks)
            if [ask.kind for ask in self.asks] != ["question"] and how not in result.response:
                self.tell(how)
            return
        if problem := result.metadata.get("problem"):
            self.tell(str(problem))

    @property
    def stopped(self) -> str:
        """What is said about a session whose work was stopped."""
        steps = self._run.planned
        done = sum(step.step.is_finished for step in steps)
        how = f"{done} of {counted(len(steps), 'step')} done. " if steps else ""
        if not self.is_person:
            return f"stopped: {how}The session is kept."
        return (
            f"stopped: {how}The session is kept. Press Enter to continue; "
            "a new message gives it up."
        )


def read_piped_answer(text: str) -> str | Mapping[str, Any]:
    """What a program answers: a text, or answers by key as JSON."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError:
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) and found else text


def left_open_text(asks: Sequence[Question]) -> str:
    """The message if the person leaves something open."""
    if [ask.kind for ask in asks] == ["question"]:
        return "Left open. Type the answer, or press Enter to see the question again."
    what = "The plan waits" if asks[0].key == PLAN else counted(len(asks), "thing") + " left open"
    return f"{what}. Press Enter to see it again; /undo goes one step back."
