"""What a person can ask for in the middle of a conversation, by a word after a slash."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from replan.base.failures import describe
from replan.cli.talk.conversation import Conversation
from replan.cli.user_files.new_file import write_new
from replan.sessions.turn import PLAN, SUMMARY
from replan.views.cells import one_line

Command = Callable[[Conversation, str], Awaitable[None]]

LEAVING = frozenset({"quit", "exit"})
HELP = """\
/plan           shows the current plan, or the newest one
/job            shows the state of the job of this session
/memory         shows the summary of this session, and facts about you
/undo           takes back the newest message or answer, and its results
/new            begins another session; this one stays stored
/export [FILE]  writes this session into a new file
/help           shows this list
/quit           leaves, as Ctrl-D does; the session stays stored

A line is a message. While a question is open, it is the answer. Enter alone repeats the open
question, or continues work that was stopped. Ctrl-C stops the work. To send a message that begins
with a slash, put a space before it.
"""

_COMMAND = re.compile(r"/([A-Za-z]+)(?:\s+(.*))?$")


def command_in(line: str) -> tuple[str, str] | None:
    """The command of a line, and what is behind it; None for a message."""
    found = _COMMAND.match(line)
    return None if found is None else (found[1].casefold(), (found[2] or "").strip())


async def run_command(name: str, rest: str, conversation: Conversation) -> None:
    """Execute a command.

    Raises:
        ReplanError: It cannot be done.
    """
    command = _COMMANDS.get(name)
    if command is None:
        command_names = ", ".join(f"/{command}" for command in _COMMANDS)
        conversation.tell(f"There is not a command /{name}. There are: {command_names}, /quit.")
        return
    await command(conversation, rest)


async def _plan(conversation: Conversation, _: str) -> None:
    document = conversation.plan or str(conversation.context.project_state.get(PLAN, ""))
    conversation.show(document or "There is no plan in this session yet.")


async def _job(conversation: Conversation, _: str) -> None:
    view = conversation.job
    if view is None:
        conversation.show("There is no job in this session.")
        return
    shown = [
        f"- {name}: {_value_text(value)}"
        for name, value in view.items()
        if value not in ("", [], {})
    ]
    conversation.show("\n".join(shown))


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return ", ".join(f"{name} = {value}" for name, value in fields.items())
    return (
        ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    )


async def _memory(conversation: Conversation, _: str) -> None:
    summary = conversation.context.project_state.get(SUMMARY)
    text = summary.get("text") if isinstance(summary, dict) else ""
    facts = await conversation.talk.opened.facts.all()
    parts = [f"Summary of this session:\n\n{text}"] if text else []
    if facts:
        fact_lines = "\n".join(f"- {one_line(fact.text)}" for fact in facts)
        parts.append(f"Known about you (`replan memory` forgets it):\n\n{fact_lines}")
    said = len(conversation.context.dialogue_history)
    nothing = f"No summary, and no facts about you. This session has {said} messages."
    conversation.show("\n\n".join(parts) or nothing)


async def _undo(conversation: Conversation, _: str) -> None:
    client = conversation.talk.opened.client
    back = await client.undo(conversation.session_id)
    await conversation.reload()
    conversation.tell(back.note)
    said = [message.content for message in back.messages if message.role == "user"]
    conversation.draft = said[0] if said and isinstance(said[0], str) else ""


async def _new(conversation: Conversation, _: str) -> None:
    before = conversation.session_id if conversation.context.dialogue_history else ""
    conversation.begin_new()
    kept = f" The session {before} is kept." if before else ""
    conversation.tell(f"This is the new session {conversation.session_id}.{kept}")


async def _export(conversation: Conversation, rest: str) -> None:
    context = await conversation.talk.opened.client.export(conversation.session_id)
    path = _path(rest or f"session-{conversation.session_id}.json")
    write_new(path, json.dumps(context.to_dict(), ensure_ascii=False, indent=1) + "\n")
    conversation.tell(f"wrote {one_line(str(path))}")


def _path(text: str) -> Path:
    return Path(text).expanduser()


async def _help(conversation: Conversation, _: str) -> None:
    conversation.tell(HELP)
    try:
        operations = await conversation.talk.opened.partner.operations()
        lines = [f"- {operation.name}: {operation.description}" for operation in operations]
    except Exception as error:  # noqa: BLE001 - foreign code; the list above was shown
        lines = [f"The pipeline could not list its operations: {describe(error)}"]
    if lines:
        title = "The pipeline offers:"
        conversation.tell("\n".join([title, *(one_line(line) for line in lines)]))


_COMMANDS: dict[str, Command] = {
    "plan": _plan,
    "job": _job,
    "memory": _memory,
    "undo": _undo,
    "new": _new,
    "export": _export,
    "help": _help,
}
