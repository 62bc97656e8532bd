"""The text of a report: summary, chart, contents, and a section for each result."""

import re
from collections.abc import Mapping
from datetime import datetime

from replan.plan.model import Value
from replan_local.answer_table import AnswerTable, tables_in
from replan_local.report_mark import REPORT_MARK
from replan_local.words import joined

_BOLD_LINE = re.compile(r"^(?:#{1,6}\s+(?P<heading>.+)|\*\*(?P<bold>[^*\n]+)\*\*.*)$")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_PLACE = re.compile(r"^\(`(?P<place>[^`]+)`")
_SENTENCE = re.compile(r"^(?:[-*+]\s+)?(?P<text>.+?[.!?\u3002\uff01\uff1f](?=\s|$)|.+)")
_LONGEST_TITLE, _MOST_FINDINGS, _LONGEST_LINE = 90, 3, 240


class Section(Value):
    """A part of the report: the result of one step."""

    step: int
    title: str
    text: str

    @property
    def findings(self) -> tuple[str, ...]:
        """The lines that say what was found: its list, else its first quote, else a sentence."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        points = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        prose = [line for line in lines if not line.startswith(("|", "#", "**", "```", ">"))]
        quotes = [quote] if (quote := _first_quote(lines)) else []
        chosen = [*quotes, *points][:_MOST_FINDINGS] or prose[:1]
        return tuple(line[:_LONGEST_LINE] for line in chosen)

    @property
    def tables(self) -> tuple[AnswerTable, ...]:
        """The tables that are shown whole, titled as the section is."""
        return () if "more rows are not shown" in self.text else tables_in(self.text, self.title)


class Picture(Value):
    """A chart beside the report.

    Attributes:
        file: Its name, in the same folder.
        title: What it shows.
        note: What it does not show; empty if nothing.
    """

    file: str
    title: str
    note: str = ""


def sections_of_inputs(inputs: Mapping[int, str]) -> tuple[Section, ...]:
    """Make a section of each result that has text."""
    return tuple(
        Section(step=step, title=_section_title(text, step), text=text)
        for step, given in sorted(inputs.items())
        if (text := _inert(given.strip()))
    )


def title_of(sections: tuple[Section, ...]) -> str:
    """A title of what a report holds: as many of its parts as fit."""
    names = [part.title for part in sections]
    for count in range(len(names), 1, -1):
        more = [f"{len(names) - count} more"] if count < len(names) else []
        title = f"Report: {joined([*names[:count], *more])}"
        if len(title) <= _LONGEST_TITLE:
            return title
    return one_line(f"Report: {names[0]}")


def report_text(
    title: str, sections: tuple[Section, ...], now: datetime, chart: Picture | None, missing: str
) -> str:
    """Write the report.

    Args:
        title: Its title.
        sections: Its parts.
        now: Its date.
        chart: The chart, if there is one.
        missing: Why there is no chart, if that has to be said.
    """
    names = [f"{number}. {part.title}" for number, part in enumerate(sections, start=1)]
    parts = [f"# {_inert(title)}", f"{now:%Y-%m-%d}"]
    if points := points_of(sections):
        parts += ["## Summary", "\n".join(points)]
    if chart is not None:
        parts += ["## Chart", f"![{_alternative(chart.title)}]({chart.file})", chart.note]
    parts += [missing, "## Contents", "\n".join(names)]
    for name, part in zip(names, sections, strict=True):
        parts += [f"## {name}", _below(part.text)]
    return "\n\n".join([part for part in parts if part] + [REPORT_MARK]) + "\n"


def points_of(sections: tuple[Section, ...]) -> list[str]:
    """What was found, as a list."""
    return [f"- **{part.title}**: {line}" for part in sections for line in part.findings]


def one_line(text: str) -> str:
    """A title of a text: on one line, not too long."""
    line = " ".join(text.replace("#", " ").split())
    if len(line) <= _LONGEST_TITLE:
        return line
    return line[: _LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "\u2026"


def _inert(text: str) -> str:
    """Give a text whose HTML is shown, and which loads no picture from anywhere.

    Entities, since a sign that is escaped by a backslash is not where one stands before it.
    """
    return _TAG.sub("&lt;", text).replace("![", "&#33;[")


def _section_title(text: str, step: int) -> str:
    found = _BOLD_LINE.match(text.strip().splitlines()[0].strip())
    title = (found["heading"] or found["bold"]) if found else ""
    return one_line(title) or f"Result of step {step}"


def _first_quote(lines: list[str]) -> str:
    """The first sentence of the first block quote and where it stands; empty without a place."""
    quoted = [line.removeprefix(">").strip() for line in lines if line.startswith(">")]
    said = [line for line in quoted if line]
    place = next((found for line in said if (found := _PLACE.match(line))), None)
    paragraph = " ".join(said[: said.index(place.string)]) if place else ""
    sentence = _SENTENCE.match(paragraph)
    return f"\u201c{sentence['text']}\u201d (`{place['place']}`)" if sentence and place else ""


def _alternative(title: str) -> str:
    return "Chart: " + title.replace("[", "(").replace("]", ")")


def _below(text: str) -> str:
    """Push the headings of a result below those of the report; code keeps its signs."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        deeper = re.match(r"#{1,4} ", line) and not in_code
        lines.append(f"##{line}" if deeper else line)
    return "\n".join(lines)
