"""Every example of the documentation runs and shows what it says; every link leads somewhere.

What a page may hold:

- ```python blocks run in their order, in one namespace for each page; the lines that begin with
  `# >` are what the block prints.
- ```console blocks: commands after `$`, and what they print. Those that begin with `replan`,
  `make demo` or `echo $?` are run; `< FILE` is what they read.
- `<!-- file: NAME -->` before a block of any language: its text is saved as that file.
- `<!-- setup` ... `-->`: Python that the rendered page does not show.

`...` stands for any text. A page's folder holds a copy of `examples`.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from replan import Limits, build_graph
from replan.cli.main import app
from replan.events import BaseEvent, StepEvent
from replan.log.events.callbacks import HOOKS
from replan.testing import OpenAIServer, ScriptedModel
from replan_local import local_team
from transcripts import forget_modules

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.glob("*.md"))]
IDS = [page.name for page in PAGES]
PIECE = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^(?:<!-- file: (?P<file>\S+) -->\n+)?"
    r"(?P<fence>`{3,})(?P<language>\w+)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"(?<!\!)\[[^\]]*\]\((?!https?:)(?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<image>[^)]+)\)"
)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass
class Piece:
    """A block of a page, and the line of the page that its text begins on."""

    kind: str
    text: str
    line: int
    file: str | None


def pieces_of(page: Path) -> Iterator[Piece]:
    text = page.read_text(encoding="utf-8")
    for found in PIECE.finditer(text):
        group = "setup" if found["setup"] is not None else "text"
        line = text.count("\n", 0, found.start(group)) + 1
        kind = "setup" if group == "setup" else found["language"]
        yield Piece(kind, found[group], line, found["file"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples, and an environment that is as before when the page is over."""
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        yield tmp_path
    forget_modules(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_the_examples_of_a_page_run_and_show_what_they_say(page: Path, folder: Path):
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shell = Shell()
    with contextlib.ExitStack() as stack:
        stack.callback(close_servers, namespace)
        for piece in pieces_of(page):
            if piece.file is not None:
                (folder / piece.file).write_text(piece.text, encoding="utf-8")
            elif piece.kind == "console":
                shell.run(piece, page)
            elif piece.kind in ("python", "setup"):
                run_python(piece, page, namespace)
        check_scripts(namespace)


def check_scripts(namespace: dict[str, Any]) -> None:
    for value in namespace.values():
        if isinstance(value, ScriptedModel | OpenAIServer):
            value.assert_finished()


def close_servers(namespace: dict[str, Any]) -> None:
    for value in namespace.values():
        if isinstance(value, OpenAIServer):
            value.close()


def run_python(piece: Piece, page: Path, namespace: dict[str, Any]) -> None:
    # Blank lines before it, so that a traceback names the line of the page.
    source = "\n" * (piece.line - 1) + piece.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(page), "exec"), namespace)  # noqa: S102 - our own documentation
    lines = piece.text.splitlines()
    told = [line[3:].removeprefix(" ") for line in lines if line.startswith("# >")]
    if piece.kind == "python" and (told or printed.getvalue()):
        check("\n".join(told), printed.getvalue(), page, piece.line)


class Shell:
    """Runs the commands of a page in this process, as far as it knows them."""

    def __init__(self) -> None:
        self.code = 0

    def run(self, piece: Piece, page: Path) -> None:
        line = piece.line
        for block in re.split(r"^(?=\$ )", piece.text, flags=re.MULTILINE):
            command, _, told = block.partition("\n")
            if command.startswith(("$ replan ", "$ make demo", "$ echo $?")):
                check(told, self.output(command.removeprefix("$ ")), page, line)
            line += block.count("\n")

    def output(self, command: str) -> str:
        if command == "echo $?":
            return f"{self.code}\n"
        words = shlex.split(recipe_of_demo() if command == "make demo" else command)
        given = ""
        if "<" in words:
            *words, _, name = words
            given = Path(name).read_text("utf-8")
        result = CliRunner().invoke(app, words[1:], input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.code = result.exit_code
        return result.output


def recipe_of_demo() -> str:
    """The command that `make demo` runs, without the folder of its program."""
    dry = subprocess.run(
        ["make", "-n", "-C", str(ROOT), "demo"],  # noqa: S607 - by the make of the user
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"\S*/replan (run .*)", dry.stdout.replace("\\\n", " "), re.DOTALL)
    assert found is not None, dry.stdout
    return f"replan {found[1].splitlines()[0]}"


def check(told: str, printed: str, page: Path, line: int) -> None:
    parts = (re.escape(part) for part in told.strip().split("..."))
    shown = "\n".join(each.rstrip() for each in printed.strip().splitlines())
    if re.fullmatch(".*?".join(parts), shown, re.DOTALL) is None:
        pytest.fail(f"{page.name}, line {line}: the page says\n\n{told}\n\nbut it is\n\n{shown}\n")


def test_the_links_of_the_pages_lead_somewhere():
    links = [(page, one) for page in PAGES for one in LINK.finditer(page.read_text("utf-8"))]
    for page, found in links:
        target, _, anchor = (found["target"] or found["image"]).partition("#")
        place = page.parent / target if target else page
        assert place.exists(), f"{page.name}: {found[0]}"
        if anchor:
            headings = HEADING.findall(place.read_text(encoding="utf-8"))
            assert anchor in map(anchor_of, headings), f"{page.name}: {found[0]}"


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_drawing_of_the_architecture_is_the_graph(folder: Path):
    script = runpy.run_path(str(DOCS / "make_pictures.py"))
    (drawn,) = script["DRAWING"].findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert drawn == script["mermaid"](build_graph(local_team(folder)))


def test_the_picture_is_one_of_the_living_plan_of_the_demo():
    script = runpy.run_path(str(DOCS / "make_pictures.py"))
    picture = (DOCS / "images" / "run.svg").read_text(encoding="utf-8")
    assert "<image" not in picture
    assert "url(http" not in picture
    words = re.sub(r"<[^>]+>", " ", picture).replace("&#160;", " ")
    first, second, *_ = demo_clauses(script["demo_task"]())
    assert first in words
    assert second in words
    for mark in ("✓", "✗", "·"):
        assert f"{mark} " in words
    assert re.search(r"data_analyst +\d\.\d s", words)
    assert " of 5 done, " in words


def demo_clauses(task: str) -> list[str]:
    """The first words of each part of the task, as the steps have them."""
    return [" ".join(part.split()[:4]) for part in task.split("; ")]


def test_every_event_and_every_hook_is_documented():
    text = (DOCS / "events.md").read_text(encoding="utf-8")
    kinds = [*BaseEvent.__subclasses__(), *StepEvent.__subclasses__()]
    types = {kind.model_fields["type"].default for kind in kinds if "type" in kind.model_fields}
    assert {name for name in types if f"`{name}`" not in text} == set()
    assert {name for name in HOOKS.values() if f"`{name}`" not in text} == set()


def test_every_limit_and_its_default_is_documented():
    text = (DOCS / "limits.md").read_text(encoding="utf-8")
    for name, field in Limits.model_fields.items():
        default = f"{field.default:g}" if isinstance(field.default, int | float) else "none"
        assert f"| `{name}` | {default} |" in text
