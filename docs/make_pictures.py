"""Redraw the pictures of the documentation: a run of the demo, and the graph.

    python docs/make_pictures.py

writes `docs/images/run.svg` from a real run, and the graph's drawing into `ARCHITECTURE.md`.
"""

import asyncio
import re
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from replan.assembly.graphs import build_graph
from replan.assembly.runtime import stream
from replan.cli.user_files.storage_location import now
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.ports.built_in import built_in_models
from replan.views.live.frame import Window, frame, whole_plan
from replan.views.live.reporters import Lines
from replan_local import local_team

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "run.svg"
WIDTH = 84
WINDOW = Window(width=WIDTH - 1, height=24)
CUT = "[ cut from the picture ]"
AT_ONCE = "[ the plan lives: a moment in which steps run at the same time ]"
FAILED = "[ a moment later: a step has failed, and the host will revise the plan ]"
ENDED = "[ the end ]"
DRAWING = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_THEME = TerminalTheme(
    (24, 27, 33),
    (208, 212, 220),
    [
        (118, 126, 140),
        (224, 108, 117),
        (126, 198, 120),
        (222, 184, 105),
        (97, 160, 236),
        (198, 120, 221),
        (92, 190, 200),
        (208, 212, 220),
    ],
)
_STYLES = (
    (r"#+ .*", "bold white"),
    (r"\*\*.*", "bold"),
    (r"completed: .*", "bold green"),
    (r"\[ .* \]", "bright_black italic"),
)

# Rich's own frame asks a server for its font; this one is content with what the reader has.
_FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


@dataclass
class Seen:
    """A run as a terminal has seen it.

    Attributes:
        moments: The run after each event, and when that was.
        lines: What is printed where there is no terminal; it ends with the answer and the account.
    """

    moments: list[tuple[RunReport, datetime]] = field(default_factory=list[Any])
    lines: list[str] = field(default_factory=list[str])


def main() -> None:
    """Write the picture and the drawing."""
    with tempfile.TemporaryDirectory() as out:
        shown = asyncio.run(run_of_demo(Path(out)))
        PICTURE.write_text(svg(shown), encoding="utf-8")
        drawing = mermaid(build_graph(local_team(ROOT / "examples" / "data", Path(out))))
    page = ROOT / "ARCHITECTURE.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(DRAWING.sub(lambda _: f"```mermaid\n{drawing}```", text), encoding="utf-8")


def demo_task() -> str:
    """The task of `make demo`."""
    found = re.search(r"^DEMO_TASK := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise LookupError("The Makefile has no DEMO_TASK.")
    return found[1]


async def run_of_demo(out: Path) -> Seen:
    """Run the demo, and give what a terminal shows of it."""
    data = ROOT / "examples" / "data"
    lines = Lines(workspace=data)
    graph = build_graph(local_team(data, out))
    seen, run, text = Seen(), RunReport.begun("demo", now()), ""
    async for event in stream(graph, demo_task()):
        timed = event.replace(at=now())
        before, run = run, apply(run, timed)
        seen.moments.append((run, now()))
        text += lines.lines_of(timed, before, run)
    seen.lines = text.split("\n")
    return seen


def svg(seen: Seen) -> str:
    """Draw a run: two moments of the living plan, its end, a part of the answer, the account."""
    console = Console(record=True, width=WIDTH, file=StringIO(), highlight=False)
    console.print(Text("$ make demo", style="bold"))
    console.print(Text(built_in_models()["offline"].notice, style="bright_black"))
    for title, moment in ((AT_ONCE, most_at_once(seen)), (FAILED, first_failure(seen))):
        _print(console, "", title, "")
        _print(console, *frame(moment[0], WINDOW, moment[1]))
    last, end = seen.moments[-1]
    _print(console, "", ENDED, "")
    _print(console, *whole_plan(last, WINDOW, end))
    sections = [at for at, line in enumerate(seen.lines) if line.startswith("## ")]
    part = next(at for at in sections if "ompare" in seen.lines[at])
    end = next(at for at in sections if at > part)
    _print(console, "", CUT, "", *seen.lines[part:end], CUT, "", seen.lines[-2])
    return console.export_svg(
        title="make demo", theme=_THEME, code_format=_FRAME, font_aspect_ratio=0.61, unique_id="run"
    )


def most_at_once(seen: Seen) -> tuple[RunReport, datetime]:
    """The moment in which most steps run."""
    return max(seen.moments, key=lambda moment: moment[0].count(StepStatus.EXECUTING))


def first_failure(seen: Seen) -> tuple[RunReport, datetime]:
    """The moment in which a step has failed, and all that ran beside it is done."""
    return next(
        moment
        for moment in seen.moments
        if moment[0].count(StepStatus.FAILED) and not moment[0].count(StepStatus.EXECUTING)
    )


def mermaid(graph: Any) -> str:
    """Draw a graph as LangGraph knows it, without its colours: nodes and edges, forks dashed."""
    drawn = graph.get_graph()
    place = {name: at for at, name in enumerate(drawn.nodes)}
    edges = sorted(drawn.edges, key=lambda edge: (place[edge.source], place[edge.target]))
    names = {"__start__": "START([start])", "__end__": "END([end])"}
    lines = ["flowchart TD"]
    for edge in edges:
        source, target = (names.get(each, each) for each in (edge.source, edge.target))
        lines.append(f"    {source} {'-.->' if edge.conditional else '-->'} {target}")
    return "\n".join(lines) + "\n"


def _print(console: Console, *lines: str | Text) -> None:
    for line in lines:
        console.print(_styled(line) if isinstance(line, str) else line)


def _styled(line: str) -> Text:
    style = next((style for pattern, style in _STYLES if re.fullmatch(pattern, line)), "")
    return Text(line, style=style)


if __name__ == "__main__":
    main()
