"""Draw the pictures of the documentation anew: a run of the demo, and the graph.

    python docs/make_pictures.py

writes `docs/images/run.svg` from a real run, and the graph's drawing into `README.md`.
"""
# ruff: noqa: INP001 - a script, not a package

import asyncio
import re
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from replan.adapters.offline import OFFLINE_NOTICE
from replan.app import local_graph
from replan.cli.lines import Lines
from replan.running import stream

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "run.svg"
WIDTH = 84
CUT = "[ cut from the picture ]"
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
    (r"thinking$", "bright_black"),
    (r"#+ .*", "bold white"),
    (r"- \[ \].*", "white"),
    (r"-> step .*", "cyan"),
    (r"\[x\] step .*", "green"),
    (r"\[!\] step .*", "red"),
    (r"\*\*.*", "bold"),
    (r"completed: .*", "bold green"),
    (r"\[ .* \]", "bright_black italic"),
)
_AT_NAME = re.compile(r"@\w+")
_WAITS = re.compile(r"\(after [\d, ]+\)$")

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
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Write the picture and the drawing."""
    with tempfile.TemporaryDirectory() as out:
        shown = asyncio.run(run_of_demo(Path(out)))
        PICTURE.write_text(svg(shown), encoding="utf-8")
        drawing = mermaid(local_graph(directory=ROOT / "examples" / "data", out=Path(out)))
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(DRAWING.sub(lambda _: f"```mermaid\n{drawing}```", text), encoding="utf-8")


def demo_task() -> str:
    """The task of `make demo`."""
    found = re.search(r"^DEMO_TASK := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise LookupError("The Makefile has no DEMO_TASK.")
    return found[1]


async def run_of_demo(out: Path) -> list[str]:
    """Run the demo, and give the lines that it prints."""
    data = ROOT / "examples" / "data"
    lines = Lines(workspace=data, clock=time.monotonic)
    graph = local_graph(directory=data, out=out)
    return "".join([lines.lines_of(event) async for event in stream(graph, demo_task())]).split(
        "\n"
    )


def svg(lines: list[str]) -> str:
    """Draw the lines of a run: the plan, the steps, a part of the answer, the account."""
    sections = [at for at, line in enumerate(lines) if line.startswith("## ")]
    part = next(at for at in sections if "ompare" in lines[at])
    end = next(at for at in sections if at > part)
    shown = [*lines[: sections[0]], CUT, "", *lines[part:end], CUT, "", lines[-2]]
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text("$ make demo", style="bold"))
    console.print(Text(OFFLINE_NOTICE, style="bright_black"))
    for line in shown:
        console.print(_styled(line), no_wrap=False)
    return console.export_svg(
        title="make demo", theme=_THEME, code_format=_FRAME, font_aspect_ratio=0.61, unique_id="run"
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


def _styled(line: str) -> Text:
    style = next((style for pattern, style in _STYLES if re.fullmatch(pattern, line)), "")
    text = Text(line, style=style)
    if line.startswith("- [ ]"):
        text.highlight_regex(_AT_NAME, "cyan")
        text.highlight_regex(_WAITS, "yellow")
    return text


if __name__ == "__main__":
    main()
