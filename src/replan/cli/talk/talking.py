"""Have a conversation: read lines until the person leaves."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

from platformdirs import user_data_path

from replan.base.errors import ReplanError
from replan.base.texts.signs import harmless
from replan.cli.desk.dialogs import Desk, Quit
from replan.cli.desk.keyboard import Keyboard
from replan.cli.shared.process import INTERRUPTED, TERMINATED
from replan.cli.shared.signals import Stop, handling_signals
from replan.cli.shared.site import Site
from replan.cli.talk.commands import LEAVING, command_in, run_command
from replan.cli.talk.conversation import Conversation, Talk
from replan.cli.talk.lines import Interrupted, Lines, PipedLines, TypedLines
from replan.cli.talk.opening import Opened, choose_session
from replan.cli.user_files.orders import Order
from replan.sessions.client.kept_turn import check_agent
from replan.views.cells import counted
from replan.views.live.manner import POOR_TERMINALS
from replan.views.session_messages import messages_text

_SHOWN = 2
_LEAVE = "Press Ctrl-C again, or Ctrl-D, to leave."


@dataclass(frozen=True)
class TalkDesk(Desk):
    """A desk whose answers come from the source of the messages."""

    lines: Lines = field(kw_only=True)

    async def line(self, prompt: str) -> str:
        """Return the next line of an answer."""
        line = await self.lines.line(prompt)
        if line is None:
            raise Quit
        return line.strip()


async def converse(
    opening: AbstractAsyncContextManager[Opened],
    order: Order,
    session: str | None,
    site: Site,
    resume: Callable[[str], str],
) -> int:
    """Have a conversation to its end, and return the exit code."""
    # For signals between two parts that handle signals themselves.
    between = Stop(asyncio.Event(), finish=lambda: None)
    async with opening as opened:
        talk = _talk(opened, order, site, resume, between)
        conversation = Conversation(talk, await choose_session(session, opened))
        with handling_signals(between):
            try:
                await conversation.reload()
                check_agent(conversation.context, opened.partner.name)
                _greet(conversation)
                await conversation.continue_cut_off()
                await conversation.answer()
                while (line := await _next_line(conversation, between)) is not None:
                    if not await _handle_line(line, conversation):
                        break
            except Interrupted as interrupted:
                conversation.exit_code()
                return interrupted.code
            return conversation.exit_code()


def _talk(
    opened: Opened, order: Order, site: Site, resume: Callable[[str], str], between: Stop
) -> Talk:
    lines = _lines_of(site, keeps=site.location.outlives and not opened.partner.has_secrets)
    # A program is not asked, and what it writes may be no file.
    keyboard = Keyboard(site.input.fileno() if site.asks else -1)

    def editing(has_terminal: bool) -> None:
        between.is_editing = has_terminal

    return Talk(
        opened=opened,
        site=site,
        lines=lines,
        desk=TalkDesk(keyboard, site.output, site.environment, editing, lines=lines),
        reporter=partial(site.reporter, opened.partner.workspace),
        settings=order.settings,
        resume=resume,
    )


def _lines_of(site: Site, *, keeps: bool) -> Lines:
    if not site.asks:
        return PipedLines(site.input)
    is_poor = site.manner.plain or site.environment.get("TERM", "") in POOR_TERMINALS
    if is_poor or find_spec("prompt_toolkit") is None:
        return TypedLines(site.input, site.output)
    from replan.cli.talk.edited_lines import EditedLines  # noqa: PLC0415 - an extra

    kept = user_data_path("replan", appauthor=False) / "messages"
    return EditedLines(kept if keeps else None)


def _greet(conversation: Conversation) -> None:
    site, context = conversation.talk.site, conversation.context
    if not site.shows_all:
        return
    said = context.dialogue_history
    how = counted(len(said), "message") if said else "new"
    help_ = " /help lists what can be asked for; Ctrl-D leaves." if conversation.is_person else ""
    lines = [*conversation.talk.opened.notices, f"Session {conversation.session_id}, {how}.{help_}"]
    for line in lines:
        if conversation.is_person:
            conversation.tell(line)
        else:
            site.complain(harmless(line))
    if not conversation.is_person:
        return
    if conversation.asks or conversation.is_stopped:
        conversation.show_work()
    elif said:
        conversation.show(messages_text(said[-_SHOWN:]))
    if conversation.is_stopped:
        conversation.tell(conversation.stopped)


async def _next_line(conversation: Conversation, between: Stop) -> str | None:
    """The next line; None at the end."""
    lines, is_leaving = conversation.talk.lines, False
    while True:
        if between.code == TERMINATED:
            raise Interrupted(TERMINATED)
        between.asked.clear()
        if conversation.asks:
            # What was typed before is not an answer.
            lines.clear()
        try:
            return await lines.line(
                conversation.prompt, default=conversation.draft, is_message=True
            )
        except Interrupted as interrupted:
            if is_leaving or interrupted.code != INTERRUPTED or not conversation.is_person:
                raise
            is_leaving = True
            conversation.tell(_LEAVE)
        finally:
            conversation.draft = ""


async def _handle_line(line: str, conversation: Conversation) -> bool:
    """Do what a line says; return whether the conversation continues."""
    command = command_in(line)
    if command is not None and command[0] in LEAVING:
        return False
    try:
        if command is not None:
            await run_command(*command, conversation)
        elif line.strip():
            await conversation.say(line.strip())
        elif conversation.is_person:
            await conversation.go_on()
    except ReplanError as error:
        conversation.talk.site.complain(f"replan: {harmless(str(error))}")
    return True
