"""A specialist that puts the results of earlier steps into one Markdown report."""

import hashlib
import os
import re
import tempfile
import time
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan.plan.model import Value
from replan.state.results import Artifact, ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard

Clock = Callable[[], datetime]

_CARD = SpecialistCard(
    name="writer",
    intended_use="Put the results of earlier steps into one report file.",
    capabilities=(
        "report, summary or brief in Markdown with contents and dates",
        "summarise or summarize findings",
    ),
)
_ONLY_ASKS = re.compile(
    r"^(?:then\s+|finally\s+)?(?:please\s+)?"
    r"(?:write|make|create|produce|prepare|draft|generate|give|build|present|summari[sz]e|report)\b"
    r"(?:\s+(?:me|us|up|it|them|both|all|everything|the|an?|these|those|short|brief|final|one-page"
    r"|markdown|report|summary|overview|results?|findings|of|on|about|for|from|with|in))*\s*",
    re.IGNORECASE,
)
_BOLD_LINE = re.compile(r"^(?:#{1,6}\s+(?P<heading>.+)|\*\*(?P<bold>[^*\n]+)\*\*.*)$")
_LONGEST_TITLE, _LONGEST_SLUG, _MOST_FINDINGS, _LONGEST_LINE = 90, 40, 3, 240
_FEWEST_WORDS = 2


class Section(Value):
    """A part of the report: the result of one step."""

    step: int
    title: str
    text: str

    @property
    def findings(self) -> tuple[str, ...]:
        """The lines that say what was found: the list of the result, else its first sentence."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        points = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        prose = [line for line in lines if not line.startswith(("|", "#", "**", "```", ">"))]
        chosen = points[:_MOST_FINDINGS] or prose[:1]
        return tuple(line[:_LONGEST_LINE] for line in chosen)


class ReportWriter:
    """Writes one file for each step: the same file again if the same step is run again."""

    def __init__(self, out: Path, clock: Clock | None = None) -> None:
        self._out = out
        self._clock = clock or _now

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        return _CARD

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Write the report; without results to write about the step fails for good."""
        sections = _sections(context.inputs)
        if not sections:
            return SpecialistResult(
                specialist_name=_CARD.name,
                status=ExecutionStatus.FAILED,
                error="There is nothing to report: the step builds on no result of another step. "
                "Let it come after the steps whose results it should hold.",
                confidence=0.0,
                step_id=context.plan_step.id,
                retry=False,
            )
        title = _title(context)
        path = self._out / _file_name(title, context)
        text = _report(title, sections, self._clock())
        # Shielded from cancelling, for the file is small and half a report is of no use.
        await anyio.to_thread.run_sync(_write, path, text)
        place = _place(path, context.workspace)
        return SpecialistResult(
            specialist_name=_CARD.name,
            result=AIMessage(
                content=_told(title, sections, str(path) if Path(place).is_absolute() else place)
            ),
            step_id=context.plan_step.id,
            artifacts=(Artifact(path=place, title=title, media_type="text/markdown"),),
        )


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), tz=UTC)


def _sections(inputs: Mapping[int, str]) -> tuple[Section, ...]:
    return tuple(
        Section(step=step, title=_section_title(text, step), text=text.strip())
        for step, text in sorted(inputs.items())
        if text.strip()
    )


def _section_title(text: str, step: int) -> str:
    found = _BOLD_LINE.match(text.strip().splitlines()[0].strip())
    title = (found["heading"] or found["bold"]) if found else ""
    return _one_line(title) or f"Result of step {step}"


def _title(context: ExecutionContext) -> str:
    """What the report is about: as given, as the step says, or as the request says."""
    given = context.parameters.get("title")
    if isinstance(given, str) and given.strip():
        return _one_line(given)
    subject = _ONLY_ASKS.sub("", context.task_description).strip(" .:")
    if len(subject.split()) >= _FEWEST_WORDS:
        return _one_line(f"Report: {subject}")
    humans = [message.text for message in context.messages if message.type == "human"]
    request = next((line for line in humans[-1].splitlines() if line.strip()), "") if humans else ""
    return _one_line(f"Report: {request}") if request.strip() else "Report"


def _one_line(text: str) -> str:
    line = " ".join(text.replace("#", " ").split())
    if len(line) <= _LONGEST_TITLE:
        return line
    return line[: _LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "\u2026"


def _file_name(title: str, context: ExecutionContext) -> str:
    """A name of our own letters; its end is the step's own, so that no run meets another's file."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = "-".join(re.findall(r"[a-z0-9]+", ascii_title.lower()))[:_LONGEST_SLUG].strip("-")
    key = context.idempotency_key or f"{context.run_id}/{context.plan_step.id}"
    mark = hashlib.sha256(key.encode()).hexdigest()[:12]
    return f"{slug or 'report'}-{mark}.md"


def _report(title: str, sections: tuple[Section, ...], now: datetime) -> str:
    names = [f"{number}. {part.title}" for number, part in enumerate(sections, start=1)]
    points = _points(sections)
    parts = [f"# {title}", f"{now:%Y-%m-%d}"]
    if points:
        parts += ["## Summary", "\n".join(points)]
    parts += ["## Contents", "\n".join(names)]
    for name, part in zip(names, sections, strict=True):
        parts += [f"## {name}", _below(part.text)]
    return "\n\n".join(parts) + "\n"


def _points(sections: tuple[Section, ...]) -> list[str]:
    return [f"- **{part.title}**: {line}" for part in sections for line in part.findings]


def _below(text: str) -> str:
    """Push the headings of a result below those of the report; code keeps its signs."""
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        deeper = re.match(r"#{1,4} ", line) and not in_code
        lines.append(f"##{line}" if deeper else line)
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Put the whole file in its place at once; whoever reads meanwhile sees the old one or this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".report-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _place(path: Path, workspace: str | None) -> str:
    """The file relative to the workspace, or its whole path where it lies outside."""
    full = path.resolve()
    root = Path(workspace).resolve() if workspace else None
    inside = root is not None and full.is_relative_to(root)
    return full.relative_to(root).as_posix() if inside and root else str(full)


def _told(title: str, sections: tuple[Section, ...], place: str) -> str:
    points = _points(sections)
    count = f"{len(sections)} section{'s' if len(sections) > 1 else ''}"
    head = f"**{title}**: {count}, written to `{place}`."
    return "\n\n".join([head, "\n".join(points)]) if points else head
