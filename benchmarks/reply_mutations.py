"""Mutations of replies: those that keep what a reply means, and those that damage its form.

A damaged reply may be read as before, be asked about, or be read as text with a warning. It must
never be a plan with other steps, nor another verdict.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from reply_forms import CHINESE, ENGLISH, Kind, Meant, asked_form
from reply_reading import Found, old_plan, read_judgement, read_thought, services

from replan.plan.markdown.document import PlanDocument
from replan.plan.model import TaskPlan

RECORDED = Path(__file__).parents[1] / "tests/unit/replies/corpus/host_replies.jsonl"
_RECORDED_TEAM = ("data_analyst", "librarian", "writer")
_KINDS: tuple[Kind, ...] = ("plan", "answer", "complete", "revision")


@dataclass(frozen=True, eq=False)
class Base:
    """A reply in the form that is asked for, and how it is read."""

    name: str
    text: str
    is_thought: bool
    team: tuple[str, ...]
    old: TaskPlan

    def read(self, text: str) -> Found:
        """Read a reply in place of this one."""
        of = services(self.team)
        return read_thought(text, of) if self.is_thought else read_judgement(text, of, self.old)


@cache
def bases() -> tuple[Base, ...]:
    """What is mutated: the recorded replies, and those of the families' topics."""
    return (*_recorded(), *_made())


def _recorded() -> Iterator[Base]:
    old = TaskPlan()
    for line in filter(None, RECORDED.read_text("utf-8").split("\n")):
        reply = json.loads(line)
        is_thought = reply["node"] == "think"
        name = f"{reply['task']} {reply['node']}"
        yield Base(name, reply["reply"], is_thought, _RECORDED_TEAM, old)
        if is_thought:
            old = PlanDocument.recover(reply["reply"].split("---\n", 2)[2]).plan


def _made() -> Iterator[Base]:
    for topic in (*ENGLISH, *CHINESE):
        for kind in _KINDS:
            meant = Meant(kind, topic)
            is_thought = kind in ("plan", "answer")
            team = services().names
            yield Base(
                f"{topic.title} {kind}", asked_form(meant), is_thought, team, old_plan(meant)
            )


Mutation = Callable[[str, Random], str]


def kept(base: Base, draw: Random) -> str:
    """A reply that means the same."""
    text = base.text
    chosen = draw.sample(_KEEPING, draw.randrange(1, 4))
    for mutation in filter(chosen.__contains__, _KEEPING):
        text = mutation(text, draw)
    return text


def damaged(base: Base, draw: Random) -> str:
    """A reply whose form is damaged at one to three places."""
    text = base.text
    for _ in range(draw.randrange(1, 4)):
        text = draw.choice(_DAMAGING)(text, draw)
    return text.replace("[-]", "[")  # a mark that drops a step is content


def same(base: Base, found: Found, text: str) -> bool:
    """Whether the reading of a mutation has the same verdict and steps, up to their words.

    Of an answer nothing is lost: each of its lines that the mutation has is in it.
    """
    first = _first_reading(base)
    is_same = found.label == first.label or {found.label, first.label} == {"moderate", "complex"}
    lines = [line for line in first.text.split("\n") if line.strip("-` ") and line in text]
    is_whole = all(line in found.text for line in lines)
    return is_same and is_whole and _outline(found) == _outline(first)


def equal(base: Base, found: Found) -> bool:
    """Whether a reading is what the reply itself gives."""
    return replace(found, unread="") == replace(_first_reading(base), unread="")


@cache
def _first_reading(base: Base) -> Found:
    return base.read(base.text)


def _outline(found: Found) -> list[object]:
    """The steps without their words, in any order of the lines."""
    return sorted([(step[0], *step[3:5], str(step[5])) for step in found.steps])


def _split(text: str) -> tuple[list[str], str]:
    """The lines of the front matter, and the body with the line that opens it."""
    _, head, body = text.split("---\n", 2)
    return head.rstrip("\n").split("\n"), body


def _around(text: str, draw: Random) -> str:
    if "```" in text:
        return text
    return f"```{draw.choice(('', 'markdown', 'md', 'text'))}\n{text.rstrip()}\n```"


def _line_ends(text: str, _: Random) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _blank_lines(text: str, draw: Random) -> str:
    head, body = _split(text)
    at = draw.randrange(len(head) + 1)
    lines = [*head[:at], "", *head[at:]]
    return "\n" * draw.randrange(3) + "---\n" + "\n".join(lines) + f"\n---\n\n{body}\n"


def _order(text: str, draw: Random) -> str:
    head, body = _split(text)
    draw.shuffle(head)
    return "---\n" + "\n".join(head) + f"\n---\n{body}"


def _case(text: str, draw: Random) -> str:
    words = ("complexity", "reasoning", "verdict", "feedback", "update", "complete\n", "simple\n")
    for word in words:
        change = draw.choice((str.upper, str.capitalize))
        text = text.replace(f"\n{word}:", f"\n{change(word)}:")
        text = text.replace(f": {word}", f": {change(word)}", 1) if word.endswith("\n") else text
    return text.replace("(after ", draw.choice(("(After ", "(AFTER ", "(after ")))


def _indentation(text: str, draw: Random) -> str:
    head, body = _split(text)
    blanks = " " * draw.randrange(1, 4)
    return (
        f"{blanks}---\n" + "\n".join(f"{blanks}{line}" for line in head if line) + f"\n---\n{body}"
    )


_KEEPING: tuple[Mutation, ...] = (_order, _blank_lines, _case, _indentation, _around, _line_ends)
_MARKS = ("- [ ]", "[ ]", " ]", "[", "]", "- ", "@", "(after", "after", "(", ")", ". ", ", ")
_MARKS += ("---\n", "---", ": ", ":", "# ", "\n", "\n\n", " ")
_NOISE = ("-", "*", "`", "[", "]", "(", ")", "@", "#", ":", "|", "~~", "```\n", "---\n", "\n", "  ")
_NOISE += ("> ", "• ", "<", "{", "}", "\t", "\u200b", "\u3000", "**", "and ", "then ")


def _places(text: str, mark: str) -> list[int]:
    found, at = [], text.find(mark)
    while at >= 0:
        found.append(at)
        at = text.find(mark, at + 1)
    return found


def _without_a_mark(text: str, draw: Random) -> str:
    mark = draw.choice(_MARKS)
    places = _places(text, mark)
    at = draw.choice(places) if places else 0
    return text[:at] + text[at + len(mark) :] if places else text


def _with_another_mark(text: str, draw: Random) -> str:
    mark = draw.choice(_MARKS)
    places = _places(text, mark)
    at = draw.choice(places) if places else 0
    return text[:at] + draw.choice(_NOISE) + text[at + len(mark) :] if places else text


def _with_noise(text: str, draw: Random) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(_NOISE) + text[at:]


def _misspelt(text: str, draw: Random) -> str:
    """Leave out, repeat or exchange a letter; digits are content."""
    at = draw.randrange(len(text) - 1)
    if text[at].isdigit() or text[at + 1].isdigit():
        return text
    pieces = (text[at + 1], text[at : at + 2] + text[at + 1], text[at + 1] + text[at])
    return text[:at] + draw.choice(pieces) + text[at + 2 :]


def _exchanged_lines(text: str, draw: Random) -> str:
    """Exchange two neighbours, or repeat one."""
    lines = text.split("\n")
    at = draw.randrange(max(1, len(lines) - 1))
    pair = lines[at : at + 2]
    lines[at : at + 2] = draw.choice((pair[::-1], [pair[0], *pair]))
    return "\n".join(lines)


def _without_a_line_of_the_head(text: str, draw: Random) -> str:
    lines = text.split("\n")
    del lines[draw.randrange(min(5, len(lines)))]
    return "\n".join(lines)


def _indented_line(text: str, draw: Random) -> str:
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    lines[at] = " " * draw.randrange(1, 7) + lines[at]
    return "\n".join(lines)


_DAMAGING: tuple[Mutation, ...] = (
    *(_without_a_mark, _with_another_mark, _with_noise, _misspelt),
    *(_exchanged_lines, _without_a_line_of_the_head, _indented_line),
)
