"""Ask the person at the terminal: questions, tool calls to approve, plans to approve or edit."""

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import TextIO

from pydantic import JsonValue
from rich.cells import cell_len

from replan.base.errors import InputError, Mistake
from replan.base.texts.signs import harmless
from replan.cli.desk.keyboard import Keyboard
from replan.cli.user_files.plan_text import read_plan_text
from replan.plan.markdown.document import PlanDocument
from replan.state.person.answers import (
    arguments_of,
    decided,
    details_shown,
    question_shown,
    read_answer,
)
from replan.state.questions import Question
from replan.state.step_options import plan_mistakes
from replan.views.cells import folded, one_line

_CHOICES = "[a]pprove, [e]dit, [r]eject, [q]uit and resume later: "
_MARK = "| "


class Quit(Exception):  # noqa: N818 - nothing went wrong
    """The person leaves the question open."""


@dataclass(frozen=True)
class Desk:
    """Where a person answers."""

    keyboard: Keyboard  # what they type on
    output: TextIO  # what they read
    environment: Mapping[str, str]  # names their editor
    # Called with whether an editor has the terminal now.
    editing: Callable[[bool], None] = lambda _: None

    def say(self, text: str) -> None:
        """Write immediately, without control characters."""
        self.output.write(harmless(text))
        self.output.flush()

    async def line(self, prompt: str) -> str:
        self.say(prompt)
        try:
            line = await self.keyboard.line()
        except asyncio.CancelledError:
            # The next output does not belong after the prompt.
            self.say("\n")
            raise
        if line is None:
            self.say("\n")
            raise Quit
        return line.strip()


async def answer(ask: Question, desk: Desk, evidence: Sequence[str] = ()) -> JsonValue:
    """Ask until there is an answer; the lines of evidence are shown below the question."""
    match ask.kind:
        case "plan":
            return await _plan_answer(ask, desk, evidence)
        case "approval":
            return await _approval_answer(ask, desk, evidence)
        case _:
            return await _question_answer(ask, desk, evidence)


def _say_evidence(lines: Sequence[str], desk: Desk) -> None:
    if lines:
        desk.say("\n".join(_marked("\n".join(lines))) + "\n")


async def _question_answer(ask: Question, desk: Desk, evidence: Sequence[str]) -> JsonValue:
    who = f"{one_line(ask.who)} asks: " if ask.who else ""
    question = question_shown(ask)
    desk.say(f"\n{_quote(question, who)}\n")
    shown = details_shown(ask)
    if shown is not None:
        desk.say(f"{_quote(shown if isinstance(shown, str) else _pretty(shown))}\n")
    _say_evidence(evidence, desk)
    if how := ask.text.removeprefix(question).strip():
        # What to look at before comes first.
        desk.say(f"{_quote(how)}\n")
    while True:
        if line := await desk.line("answer (Ctrl-D to leave it open): "):
            try:
                return read_answer(ask, line)
            except InputError as error:
                desk.say(f"{error}\n")


async def _approval_answer(ask: Question, desk: Desk, evidence: Sequence[str]) -> JsonValue:
    who = f"{one_line(ask.who)}: " if ask.who else ""
    desk.say(f"\n{_quote(ask.text, who)}\n{_quote(_pretty(_call_in(ask.details)))}\n")
    _say_evidence(evidence, desk)
    shown = draft = _pretty(_arguments(ask.details))

    async def edited() -> JsonValue:
        nonlocal draft
        draft = await edited_text(draft, ".json", desk.environment, desk.editing)
        _check_changed(shown, draft)
        return decided(action="edit", arguments=arguments_of(draft))

    return await _choice(desk, edited, why="why (may be empty): ")


async def _plan_answer(ask: Question, desk: Desk, evidence: Sequence[str]) -> JsonValue:
    """Ask for a decision on a plan; the editor opens with the last text."""
    desk.say(f"\n{_quote(ask.text)}\n\n")
    for remark in (*ask.remarks, ask.problem):
        desk.say(f"{_quote(remark)}\n\n" if remark else "")
    _say_evidence(evidence, desk)
    draft = ask.draft or ask.text

    async def edited() -> JsonValue:
        nonlocal draft
        draft = await edited_text(draft, ".md", desk.environment, desk.editing)
        _check_changed(ask.text, draft)
        if mistakes := plan_mistakes(PlanDocument.recover(draft)):
            raise InputError("\n".join(_mistake_text(mistake) for mistake in mistakes))
        return decided(action="edit", plan=draft)

    return await _choice(desk, edited, why="why (empty ends the run): ")


def _check_changed(before: str, after: str) -> None:
    """Refuse an unchanged text: to leave the editor without a change is no approval."""
    if after == before:
        raise InputError("Nothing was changed.")


async def _choice(desk: Desk, edited: Callable[[], Awaitable[JsonValue]], *, why: str) -> JsonValue:
    while True:
        match (await desk.line(_CHOICES)).casefold()[:1]:
            case "a":
                return decided(action="approve")
            case "e":
                try:
                    return await edited()
                except InputError as error:
                    desk.say(f"{error}\nNothing was applied. Edit it again, or choose otherwise.\n")
            case "r":
                return decided(action="reject", reason=await desk.line(why))
            case "q":
                raise Quit
            case _:
                desk.say("Type a, e, r or q.\n")


async def edited_text(
    text: str, suffix: str, variables: Mapping[str, str], editing: Callable[[bool], None]
) -> str:
    """Open the person's editor with a text, and return what they saved."""
    editor = variables.get("VISUAL") or variables.get("EDITOR") or "vi"
    with _file_of(text, suffix) as path:
        editing(True)  # noqa: FBT003 - what is called is a setter
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(path))
            code = await process.wait()
        except (OSError, ValueError) as error:
            raise InputError(f"The editor '{editor}' cannot be started: {error}.") from error
        finally:
            editing(False)  # noqa: FBT003
        if code:
            raise InputError(f"The editor '{editor}' ended with {code}.")
        return read_plan_text(path)


@contextmanager
def _file_of(text: str, suffix: str) -> Generator[Path]:
    """A temporary file with a text that only this user can read."""
    handle, name = tempfile.mkstemp(suffix=suffix, prefix="replan-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _mistake_text(mistake: Mistake) -> str:
    return f"line {mistake.line}, column {mistake.column}: {mistake.reason} {mistake.fix}"


def _call_in(details: JsonValue) -> JsonValue:
    """What a person decides about a call: not the place that it has in its step."""
    if not isinstance(details, dict):
        return details
    return {name: value for name, value in details.items() if name != "call"}


def _arguments(details: JsonValue) -> JsonValue:
    if isinstance(details, dict) and "arguments" in details:
        return details["arguments"]
    return details


def _quote(text: str, before: str = "") -> str:
    """Foreign text, with a mark before each line, so that none looks like our own."""
    # A line that has room after the text `before` it needs no mark.
    text, width = text.strip(), get_terminal_size().columns
    if "\n" not in text and cell_len(before + harmless(text)) < width:
        return before + text
    return "\n".join([*filter(None, [before.rstrip()]), *_marked(text)])


def _marked(text: str) -> list[str]:
    lines = folded(text, get_terminal_size().columns - cell_len(_MARK) - 1)
    return [f"{_MARK}{line}" for line in lines]


def _pretty(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
