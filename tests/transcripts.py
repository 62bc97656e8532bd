"""Transcripts: what people type and what they are answered, on pages that one reads.

A page is Markdown. Each heading of the second level is one session in a folder of its own; what
stands above the first one belongs to all. A block named like a file is written as that file, a
`python` block is run, a `replies` block is what models say, by the keys of a script, and a
`console` block is typed line by line:

    $ replan show last | from next:     a command, and what of its answer is shown
    > Hello                             lines below it are typed into it
    $ KILL=1 replan run plan.md         with a variable it is a process of its own
    $ PAGE /runs/RUN-1                  what the page of the folder's `team.yaml` has there

Below each stands what is answered. `REPLAN_TEST_WRITE_SNAPSHOTS=1 make test` writes that anew.
"""

import ast
import asyncio
import builtins
import importlib
import inspect
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import httpx
import yaml
from langchain_core.messages import ToolCall
from typer.testing import CliRunner

import warm
from pages import shown
from replan import open_storage
from replan.cli.main import app
from replan.testing import Hang, OpenAIServer, Reply, always

BLOCK = re.compile(r"^(````?)(\S+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(````?)\S+\n.*?^\1$|^## ([^\n]*)$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ .*\n(?:>(?: .*)?\n)*", re.MULTILINE)
_NOT_SET = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REPLAN_MODEL", "REPLAN_BASE_URL", "LINES")
_CHANGING = {
    r"(?<=\S) {2,}": "  ",
    r"(?<=127.0.0.1:)\d{4,}": "PORT",
    r"20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)?)?": "TIME",
    r"\d\d:\d\d:\d\d": "TIME",
    r"(?<![\d.])\d+\.\d s\b": "N s",
    r"(?:(?<=TIME  )|(?<=took )|(?<=, )(?=\S+ \w+$)|(?<=\()(?=\S+ \w+\)))"
    r"[\d.]+ (?:ms|s|min)\b": "N s",
    r"(?<=^tokens  ).*": "N  N",
    r"(?<=seconds=)[\d.]+|(?<=seq=)\d+|\d[\d,]*(?= tokens)": "N",
    r"\d+ in \+ \d+ out(?= tokens)": "N in + N out",
    r" \(it waited for a person for [^)]*\)": "",
    r"^ *waited \S+ \w+ for its turn\n": "",
    r"(?<=key )[0-9a-f]{16,}": "KEY",
}
"""What is different each time, and what is shown instead."""

_IDS = {
    "RUN": r"(?<!\d=)(?<![\w/.-])[0-9a-f]{8}(?:[0-9a-f]{24})?(?![\w-])",
    "PRINT": r'(?<="fingerprint": ")[0-9a-f]+',
}
"""What is different each time, and typed again: it gets a name."""

_calls = count()


def sections_of(page: Path) -> dict[str, str]:
    """The sessions of a page by their headings; what stands above the first has none."""
    text = page.read_text("utf-8")
    found = [each for each in _HEADING.finditer(text) if each[2]]
    places = pairwise([0, *(each.start() for each in found), len(text)])
    names = ["", *(each[2] for each in found)]
    return {name: text[start:end] for name, (start, end) in zip(names, places, strict=True)}


def carry_out(page: Path, heading: str, folder: Path) -> tuple[str, str]:
    """Carry out one session of a page, and return it with what is answered now, and as it was."""
    sections = sections_of(page)
    told = sections[heading]
    with Session(folder) as session:
        BLOCK.sub(session.do, sections[""])
        now = BLOCK.sub(session.do, told)
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        page.write_text(page.read_text("utf-8").replace(told, now), "utf-8")
        told = now
    return now, told


def write_files(page: Path, folder: Path) -> None:
    """Write the files that belong to all sessions of a page."""
    for _, name, text in BLOCK.findall(sections_of(page)[""]):
        (folder / name).write_text(text, "utf-8")


def forget_modules(folder: Path) -> None:
    """Let nobody else import what is from a folder."""
    for name, module in [*sys.modules.items()]:
        # Some look for what is not in them, or import it.
        if str(vars(module).get("__file__")).startswith(str(folder)):
            del sys.modules[name]


class Session:
    """Somebody who types in a folder of their own, with a server for what models say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"folder": folder}
        self.ids = Varying(_IDS)
        self._stack = ExitStack()
        self._pages: httpx.AsyncClient | None = None

    def __enter__(self) -> Self:
        enter, folder = self._stack.enter_context, str(self.folder)
        environment = {
            "REPLAN_STORAGE": f"{folder}/runs.db",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "COLUMNS": "100",
            "LOGNAME": "eva",
            "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]),
        }
        enter(patch.dict(os.environ, environment))
        for name in _NOT_SET:
            os.environ.pop(name, None)
        self._stack.callback(os.chdir, Path.cwd())
        os.chdir(folder)
        enter(patch.object(sys, "path", [folder, *sys.path]))
        self._stack.callback(forget_modules, self.folder)
        self._runner = enter(asyncio.Runner())
        self._open = AsyncExitStack()
        self._stack.callback(lambda: self._runner.run(self._open.aclose()))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def do(self, block: "re.Match[str]") -> str:
        """Do what a block says, and return it with what is answered."""
        fence, kind, text = block.groups()
        if kind == "console":
            text = "".join(map(self._type, COMMAND.findall(text)))
        elif kind == "python":
            self._run(text)
        elif kind == "replies":
            script = {key: reply_of(told) for key, told in yaml.safe_load(text).items()}
            server = self._stack.enter_context(OpenAIServer(script))
            os.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        else:
            path = self.folder / kind
            path.write_text(text, "utf-8")
            # Python looks into a folder again only once its time has changed.
            importlib.invalidate_caches()
        return f"{fence}{kind}\n{text}{fence}"

    def _run(self, text: str) -> None:
        code = compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if inspect.iscoroutine(done := eval(code, self.names)):  # noqa: S307 - our own page
            self._runner.run(done)

    def _type(self, typed: str) -> str:
        """Type a command with its lines, and return both with what is answered."""
        command, *lines = (line[2:] for line in typed.splitlines())
        command, *parts = command.split(" | ")
        told, code = self._answer(shlex.split(self._meant(command)), self._meant("\n".join(lines)))
        told = self._plain(told)
        for part in parts:
            told = part_of(told, part)
        shown = [*told.strip("\n").splitlines(), *[f"exit code {code}"] * bool(code)]
        return typed + "".join(f"{line.rstrip()}\n" for line in shown)

    def _answer(self, words: list[str], lines: str) -> tuple[str, int]:
        path = self.folder / words[-1]
        match words:
            case ["replan", *words]:
                done = CliRunner().invoke(app, words, input=f"{lines}\n" if lines else "")
                if not isinstance(done.exception, SystemExit | None):
                    raise done.exception
                return done.output, done.exit_code
            case ["PAGE", where]:
                return self._runner.run(self._page(where)), 0
            case ["cat", _]:
                return path.read_text("utf-8"), 0
            case ["ls", pattern]:
                return "\n".join(sorted(each.name for each in self.folder.glob(pattern))), 0
            case ["sed", change, _]:
                _, before, after, _ = change.split("/")
                path.write_text(path.read_text("utf-8").replace(before, after), "utf-8")
                return "", 0
        return self._elsewhere(words, lines)

    def _elsewhere(self, words: list[str], lines: str) -> tuple[str, int]:
        """What a process of its own says, and how it ends."""
        variables = dict[str, str]()
        while "=" in words[0]:
            name, _, variables[name] = words.pop(0).partition("=")
        with tempfile.TemporaryFile("w+") as given:
            given.write(f"{lines}\n")
            given.seek(0)
            environment = {**os.environ, **variables}
            done = warm.run("-m", *words, env=environment, stdin=given.fileno())
        return f"{done.stdout}{done.stderr}", done.returncode

    async def _page(self, where: str) -> str:
        if self._pages is None:
            enter = self._open.enter_async_context
            storage = await enter(open_storage(str(self.folder / "runs.db")))
            self._pages = await enter(shown(self.folder / "team.yaml", storage))
        return (await self._pages.get(where)).text

    def _plain(self, told: str) -> str:
        """What is answered, without what is different each time."""
        return self.ids.plain(told.replace(str(self.folder), "FOLDER"))

    def _meant(self, typed: str) -> str:
        """What is typed, with the ids and the variables that it names."""
        return os.path.expandvars(self.ids.meant(typed))


class Varying:
    """What is different each time, by kinds and their patterns: it is told and typed by name."""

    def __init__(self, patterns: dict[str, str]) -> None:
        self.patterns = patterns
        self._found = {kind: list[str]() for kind in patterns}

    def plain(self, told: str) -> str:
        """A text with the names, and without times."""
        for pattern, plain in _CHANGING.items():
            told = re.sub(pattern, plain, told, flags=re.MULTILINE)
        for kind, pattern in self.patterns.items():
            told = re.sub(
                pattern, lambda found, kind=kind: f"{kind}-{self._number_of(found[0], kind)}", told
            )
        return told

    def meant(self, typed: str) -> str:
        """A text with what is named in it."""
        for kind, found in self._found.items():
            for number, each in reversed([*enumerate(found, start=1)]):
                typed = typed.replace(f"{kind}-{number}", each)
        return typed

    def _number_of(self, text: str, kind: str) -> int:
        """Which one of its kind it is. A run is told by the beginning of its id, too."""
        found = self._found[kind]
        number = next((n for n, each in enumerate(found) if each[:8] == text[:8]), len(found))
        found[number:] = [max(*found[number : number + 1], text, "", key=len), *found[number + 1 :]]
        return number + 1


def reply_of(told: Any) -> Any:
    """A reply of a script, as a page writes it; `about`: by what the newest message has."""
    match told:
        case list():
            return [reply_of(each) for each in told]
        case {"always": each}:
            return always(reply_of(each))
        case {"about": replies}:
            made = {part: reply_of(each) for part, each in replies.items()}
            return always(lambda messages: next(made[e] for e in made if e in messages[-1].text))
        case {"raises": _} | {"hangs": _}:
            return error_of(told["raises"]) if "raises" in told else Hang()
        case {"call": name, **given}:
            said, number = given.pop("said", ""), f"call-{next(_calls)}"
            return Reply(said, [ToolCall(name=name, args=given, id=number)], usage=(10, 1))
        case dict():
            told = Reply(**{"usage": (100, 50), **told})
    return told


def error_of(told: str) -> Any:
    """The error that a page names, `ValueError` or `ValueError: why`."""
    name, _, why = told.partition(": ")
    return (vars(builtins) | vars(asyncio))[name](why or "no")


def part_of(told: str, part: str) -> str:
    """A part of an answer: `grep TEXT`, `from TEXT`, `until TEXT`, `sort`, or `json PATH`."""
    how, _, what = part.partition(" ")
    if how == "json":
        found = [at(value, path) for value in documents(told) for path in what.split()]
        return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in found)
    lines = told.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if what in line]
    first = places[0] if places else len(lines)
    return {
        "grep": "".join(lines[number] for number in places),
        "from": "".join(lines[first:]),
        "until": "".join(lines[:first]),
        "sort": "".join(sorted(lines)),
    }[how]


def documents(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one behind the other."""
    while text := text.strip():
        value, end = json.JSONDecoder().raw_decode(text)
        yield value
        text = text[end:]


def at(value: Any, path: str) -> Any:
    """What stands at a path of names with dots between them; `[]` takes each entry."""
    name, _, rest = path.partition(".")
    key = int(name) if name.isdigit() else name.removesuffix("[]")
    value = value[key] if name != "[]" else value
    if name.endswith("[]"):
        return [at(each, rest) if rest else each for each in value]
    return at(value, rest) if rest else value
