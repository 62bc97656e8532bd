"""A specialist that puts the results of earlier steps into one report with a chart."""

import asyncio
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan_local.answering import refused
from replan_local.parameters import given_text, refuse_misspelt
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.writing.chart_choice import ChartData, Shape, choose_chart
from replan_local.writing.drawing import can_draw, draw
from replan_local.writing.files import file_stem, place_of, write_whole
from replan_local.writing.report import (
    Picture,
    Section,
    one_line,
    points_of,
    report_text,
    sections_of_inputs,
    title_of,
)
from replan.specialists.threads import in_thread
from replan.state.results import Artifact, ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

Clock = Callable[[], datetime]

PARAMETERS = ("title", "chart")
"""The parameters that a step may give."""

CHARTS = ("bar", "line", "none")
"""What the parameter `chart` may say."""

_CARD = SpecialistCard(
    name="writer",
    intended_use="Put the results of earlier steps into one report file.",
    capabilities=(
        "report, summary or brief in Markdown with contents and dates",
        "chart (bar or line) of a table in the results, as SVG (parameters title, chart)",
        "summarise or summarize findings",
    ),
)
_ONLY_ASKS = re.compile(
    r"^(?:then\s+|finally\s+)?(?:please\s+)?"
    r"(?:write|make|create|produce|prepare|draft|generate|give|build|present|summari[sz]e|report"
    r"|draw|plot)\b"
    r"(?:\s+(?:me|us|up|it|them|both|all|everything|the|an?|these|those|short|brief|final|one-page"
    r"|markdown|report|summary|overview|results?|findings|of|on|about|for|from|with|in|and"
    r"|bar|line|chart|charts|graph|table|tables)\b)*\s*",
    re.IGNORECASE,
)
_ASKS_FOR_CHART = re.compile(r"\b(?:charts?|graphs?|plots?|diagrams?)\b|图", re.IGNORECASE)
_ASKS_FOR_NONE = re.compile(
    r"\b(?:without|no)\s+(?:an?\s+|any\s+)?(?:chart|graph|plot|diagram)", re.IGNORECASE
)
_SHAPES: tuple[tuple[Shape, re.Pattern[str]], ...] = (
    ("bar", re.compile(r"\bbar\s+(?:chart|graph|plot)|柱", re.IGNORECASE)),
    ("line", re.compile(r"\bline\s+(?:chart|graph|plot)|折线", re.IGNORECASE)),
)
_FEWEST_WORDS, _SHORT_REQUEST = 2, 70


class ReportWriter:
    """Writes a report and a chart for each step: the same files again if it is run again."""

    def __init__(self, out: Path, clock: Clock | None = None) -> None:
        self._out = out
        self._clock = clock or _now

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        return _CARD

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Write the report; without results to write about the step fails for good."""
        try:
            work = _Report(context, self._out, self._clock())
        except CannotAnswerError as refusal:
            return refused(_CARD, context, str(refusal))
        # Shielded from cancelling, for the files are small and half a report is of no use.
        await asyncio.shield(in_thread(work.write))
        return SpecialistResult(
            specialist_name=_CARD.name,
            result=AIMessage(content=work.told()),
            step_id=context.plan_step.id,
            artifacts=tuple(work.artifacts),
        )


class _Report:
    """One step's report and chart.

    Raises:
        CannotAnswerError: There is nothing to report, or a parameter is wrong.
    """

    def __init__(self, context: ExecutionContext, out: Path, now: datetime) -> None:
        refuse_misspelt(context.parameters, PARAMETERS)
        self._sections = sections_of_inputs(context.inputs)
        if not self._sections:
            message = (
                "There is nothing to report: the step builds on no result of another step. "
                "Let it come after the steps whose results it should hold."
            )
            raise CannotAnswerError(message)
        self._context = context
        asked = _asked_title(context)
        self._title = asked or title_of(self._sections)
        # The name must not depend on the results: the same step writes the same file again.
        self._path = out / f"{file_stem(asked, context)}.md"
        self._now = now
        self._chart, self._missing = _chart(self._sections, context)
        self.artifacts: list[Artifact] = []

    def write(self) -> None:
        """Write the chart, then the report, so that it never shows a picture that is not there."""
        picture = None
        if self._chart is not None:
            path = self._path.with_suffix(".svg")
            write_whole(path, draw(self._chart))
            self._note(path, f"Chart: {self._chart.title}", "image/svg+xml")
            picture = Picture(file=path.name, title=self._chart.title, note=_note(self._chart))
        text = report_text(self._title, self._sections, self._now, picture, self._missing)
        write_whole(self._path, text)
        self._note(self._path, self._title, "text/markdown")
        self.artifacts.reverse()

    def told(self) -> str:
        """What the step's result says: where the files are and what they hold."""
        report, *charts = [artifact.path for artifact in self.artifacts]
        count = len(self._sections)
        head = (
            f"**{self._title}**: {count} section{'s' if count > 1 else ''}, written to `{report}`"
        )
        head += f", with a chart in `{charts[0]}`." if charts else "."
        parts = [head, self._missing, "\n".join(points_of(self._sections))]
        return "\n\n".join(part for part in parts if part)

    def _note(self, path: Path, title: str, media_type: str) -> None:
        place = place_of(path, self._context.workspace)
        self.artifacts.append(Artifact(path=place, title=title, media_type=media_type))


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), tz=UTC)


def _asked_title(context: ExecutionContext) -> str:
    """What the report is about: as given, as the step says, or as a short request says."""
    if given := given_text(context.parameters, "title"):
        return one_line(given)
    subject = _ONLY_ASKS.sub("", context.task_description).strip(" .:")
    if len(subject.split()) >= _FEWEST_WORDS:
        return one_line(f"Report: {subject}")
    humans = [message.text for message in context.messages if message.type == "human"]
    request = humans[-1].strip() if humans else ""
    short = 0 < len(request) <= _SHORT_REQUEST and "\n" not in request
    return one_line(f"Report: {request}") if short else ""


def _chart(
    sections: tuple[Section, ...], context: ExecutionContext
) -> tuple[ChartData | None, str]:
    """The chart, or why there is none where one was asked for."""
    wish = _wished(context)
    if wish == "none":
        return None, ""
    shape = wish if wish in ("bar", "line") else None
    tables = [table for section in sections for table in section.tables]
    chart = choose_chart(tables, context.task_description, shape)
    asked = shape is not None or _ASKS_FOR_CHART.search(context.task_description)
    if chart is None:
        reason = (
            "There is no chart: no result has a whole table with one column of labels, "
            "a column of numbers and at least two rows."
        )
        return None, reason if asked else ""
    if not can_draw():
        reason = 'There is no chart: drawing needs pygal (pip install "replan[local]").'
        return None, reason if asked else ""
    return chart, ""


def _wished(context: ExecutionContext) -> str:
    """What chart a step asks for: bar, line, none, or empty where it leaves that open."""
    given = given_text(context.parameters, "chart").casefold()
    if given and given not in CHARTS:
        message = (
            f"No chart '{given}'. There are: {', '.join(CHARTS)}.{did_you_mean(given, CHARTS)}"
        )
        raise CannotAnswerError(message)
    if given or _ASKS_FOR_NONE.search(context.task_description):
        return given or "none"
    return next((name for name, asks in _SHAPES if asks.search(context.task_description)), "")


def _note(chart: ChartData) -> str:
    if not chart.left_out:
        return ""
    return f"Not in the chart, for it has another scale: {', '.join(chart.left_out)}."
