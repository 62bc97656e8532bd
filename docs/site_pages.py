"""What the site makes of the code itself, as a hook of mkdocs: tables, and examples at the names.

The tables of events, errors, settings and commands are made from the code, so no copy of them is
kept. The examples are pieces of the guide pages, whose code the tests run.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from error_texts import KINDS, LEFT, error_texts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic import BaseModel
from signatures import plain_default, plain_type

from replan import (
    Host,
    Limits,
    MemoryOptions,
    RAGOptions,
    RunSettings,
    Specialist,
    Team,
    ToolServer,
    Traces,
)
from replan.cli.main import app
from replan.events import BaseEvent

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
SETTINGS: tuple[type[BaseModel], ...] = (
    Team, Host, Specialist, ToolServer, Limits, RunSettings, MemoryOptions, RAGOptions, Traces
)  # fmt: skip
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^::: (replan\.(?:\w+\.)?(\w+))\n(?:    .*\n)*", re.MULTILINE)
MOST_LINES = 40
# Values that no program makes: the name that gives each, whose example is shown.
GIVEN_BY = {
    "AgentResult": "process", "Agent": "build_agent",
    "Question": "waiting_for", "Decision": "waiting_for", "RunReport": "get",
    "Run": "start", "Runtime": "open_runtime",
    "LeftAlone": "resume_interrupted", "RunStatus": "runs",
    "RunResult": "run_sync", "EnhancedState": "state",
    "CollectedResults": "state", "ExecutionRecord": "state", "ThinkingResult": "state",
    "FeedbackResult": "state", "TaskComplexity": "state", "ActionType": "state",
    "Source": "sources", "Chunk": "SearchRequest", "SearchResponse": "SearchRequest",
    "Retriever": "SearchRequest", "Summary": "summarise", "Usage": "usage",
    "TaskPlan": "PlanDocument", "PlanStep": "PlanDocument", "PlanUpdate": "compare",
    "PlanUpdateType": "compare", "HistoryPage": "history", "SessionRecord": "ClientAgentAdapter",
    "SessionStore": "ClientAgentAdapter", "UndoneTurn": "ClientAgentAdapter",
    "ToolProvider": "ToolServer",
    "ToolDefinition": "ToolServer", "ToolExecution": "process", "Fact": "facts",
    "AIAdapter": "ai_adapter", "MessageUpdate": "Response", "SubThreadRequest": "Response",
    "Operation": "BaseAgent", "ThreadMessage": "require_sub_thread", "ThreadRepository": "threads",
    "get_sub_thread_by_path": "require_sub_thread", "Job": "new_job", "JobPhase": "new_job",
    "JobProcessor": "job_processor", "ProcessResult": "new_job",
    "Session": "session", "Raw": "OpenAIServer",
    "ModelCall": "calls", "ChatRequest": "OpenAIServer", "Script": "ScriptedModel",
}  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of the code."""
    pages = {
        "event": every_event(),
        "error": every_error(),
        "setting": every_setting(),
        "command": every_command(),
    }
    measured = (DOCS.parent / "benchmarks" / "README.md").read_text("utf-8")
    measured = measured.replace("](../docs/", "](")
    files.append(File.generated(config, "benchmarks.md", content=measured))
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/every_{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put an example below each name of the reference, and where its fields are told."""
    if not page.file.src_uri.startswith("reference/"):
        return markdown
    return NAMED.sub(lambda found: f"{found[0]}\n{_fields(found[2])}{_shown(found[2])}", markdown)


def _fields(name: str) -> str:
    if name not in {kind.__name__ for kind in SETTINGS}:
        return ""
    return f"**Fields**: [each with its meaning](every_setting.md#{name.lower()}).\n\n"


def _shown(name: str) -> str:
    found = example_of(name)
    if found is None:
        return ""
    code, page = found
    place = f"`{page}`"
    if page.startswith("docs/"):
        guide = page.removeprefix("docs/")
        title = (DOCS / guide).read_text("utf-8").splitlines()[0].removeprefix("# ")
        place = f"[{title}](../{guide})"
    return f"**Example**, from {place}:\n\n```python\n{code}\n```\n"


@cache
def _pieces() -> tuple[tuple[str, str, frozenset[str]], ...]:
    """The statements of guides and examples: code, file, and the names that the code uses."""
    guides = [(each, BLOCK.findall(each.read_text("utf-8"))) for each in sorted(DOCS.glob("*.md"))]
    programs = [(each, [each.read_text("utf-8")]) for each in sorted(EXAMPLES.rglob("*.py"))]
    return tuple(
        (code, file.relative_to(DOCS.parent).as_posix(), _names(statement))
        for file, blocks in (*guides, *programs)
        for block in blocks
        for statement, code in _statements(block)
    )


def _statements(block: str) -> Iterator[tuple[ast.stmt, str]]:
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            first = min([statement.lineno, *(each.lineno for each in _decorators(statement))])
            yield statement, "\n".join(lines[first - 1 : statement.end_lineno])


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return getattr(statement, "decorator_list", [])


def _names(statement: ast.stmt) -> frozenset[str]:
    nodes = list(ast.walk(statement))
    plain = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


def example_of(name: str) -> tuple[str, str] | None:
    """A piece of code that uses a name, or what gives it, and its file; the shortest of them."""
    using = [(code, page) for code, page, names in _pieces() if name in names]
    if not using and name in GIVEN_BY:
        return example_of(GIVEN_BY[name])
    fitting = [each for each in using if each[0].count("\n") < MOST_LINES]
    return min(
        fitting, key=lambda each: (each[0].count("\n") == 0, each[0].count("\n")), default=None
    )


def every_event() -> str:
    """A page with each event: when it is emitted, and its fields."""
    told = _told_of_events()
    lines = ["# Every event", "", "Made of the types. With examples: [Events](../events.md).", ""]
    for kind in sorted(_below(BaseEvent), key=lambda each: each.model_fields["type"].default):
        name = kind.model_fields["type"].default
        lines += [f"## `{name}` {{ #{name} }}", "", f"{told.get(name, '')}", ""]
        lines += [f"Class: [`{kind.__name__}`][{kind.__module__}.{kind.__name__}]", ""]
        lines += ["| field | type | default |", "|---|---|---|"]
        lines += [f"| `{field}` | {_cell(_type(info))} | {_cell(_default(info))} |"
                  for field, info in kind.model_fields.items()]  # fmt: skip
        lines += [""]
    return "\n".join(lines)


def _told_of_events() -> dict[str, str]:
    """What the page of the events says of each."""
    page = (DOCS / "events.md").read_text("utf-8")
    rows = re.findall(r"^\| (`\w+`.*?) \| (.+?) \|", page, re.MULTILINE)
    return {
        name: re.sub(r"\]\((?=[a-z_]+\.md)", "](../", text[0].upper() + text[1:]) + "."
        for names, text in rows
        for name in re.findall(r"`(\w+)`", names)
    }


def _below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield from _below(each)
        if "type" in each.model_fields:
            yield each


def every_setting() -> str:
    """A page with each setting of a team, its parts and its runs."""
    lines = ["# Every setting", "", "Made of the classes that read Python and team files.", ""]
    for kind in SETTINGS:
        lines += [f"## {kind.__name__}", ""]
        for name, info in kind.model_fields.items():
            lines += [f"### `{name}` {{ #{kind.__name__}.{name} }}", ""]
            lines += [_plain(info.description or _attributes(kind).get(name)), ""]
            lines += [f"Type: {_type(info)}. Default: {_default(info)}.", ""]
    return "\n".join(lines)


def _attributes(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of their attributes."""
    told: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        _, _, section = (each.__doc__ or "").partition("Attributes:\n")
        told |= dict(re.findall(r"^ {8}(\w+): (.+(?:\n {12}.+)*)", section, re.MULTILINE))
    return told


def _type(info: Any) -> str:
    return f"`{plain_type(info.annotation)}`"


def _default(info: Any) -> str:
    return "none, it must be given" if info.is_required() else f"`{plain_default(info)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# So that a whole text finds its entry, and the many headings do not come before the guides when
# one word is searched.
_ERRORS = f"""\
---
search:
  boost: 0.6
---
# Every error

Every text of an error, from the code, by the class that has it; the mistakes that errors list come
last. `{LEFT}` stands for a name, a value or a number. Each text says what to do. By symptom:
[Troubleshooting](../troubleshooting.md). Which class is raised when:
[Running](../running.md#errors).
"""
_LISTED = (
    "What the errors of teams, jobs, contexts, plans and requests list, each at its field or line."
)


def every_error() -> str:
    """A page with each error: its class, and every text that it has in the code."""
    texts: dict[str, list[str]] = {name: [] for name in KINDS}
    for each in error_texts():
        texts.setdefault(each.kind, []).append(each.text)
    lines, seen = [_ERRORS], set[str]()
    for name, said in texts.items():
        if name in KINDS:
            lines += [f"## `{name}` {{ #{name} }}", "", _of_class(KINDS[name]), ""]
        else:
            lines += ["## In lists of mistakes", "", _LISTED, ""]
        for text in said:
            lines += [f"#### `` {text} `` {{ #{_anchor(text, seen)} }}", ""]
    return "\n".join(lines)


def _of_class(kind: type) -> str:
    what = (kind.__doc__ or "").partition("\n")[0]
    above = next((each.__name__ for each in kind.__mro__[1:] if each.__name__ in KINDS), "")
    return f"{what} A subclass of [`{above}`](#{above})." if above else what


def _anchor(text: str, seen: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", text.lower())[:8]
    name = "-".join(words)
    while name in seen:
        name += "-again"
    seen.add(name)
    return name


def every_command() -> str:
    """A page with each command of the terminal: its arguments and options."""
    lines = [
        "# Every command",
        "",
        "Made of the command line. In use: [Terminal](../terminal.md).",
        "",
    ]
    for words, command in _commands(typer.main.get_command(app), ("replan",)):
        anchor = "-".join(words)
        lines += [f"## `{' '.join(words)}` {{ #{anchor} }}", "", _plain(command.help), ""]
        rows = [_row(each, anchor) for each in command.params]
        lines += ["| argument or option | default | what it does |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, each in sorted(command.commands.items()):
        yield from _commands(each, (*words, name))


def _row(given: Any, anchor: str) -> str:
    names = given.opts + given.secondary_opts
    shown = ", ".join(f"`{each}`" for each in names)
    if given.param_type_name == "argument":
        shown = f"`{given.metavar or given.name.upper()}`"
    default = "" if given.default in (None, False, ()) or callable(given.default) else given.default
    named = f'<span id="{anchor}.{given.name}"></span>{shown}'
    told = f"`{default}`" if default != "" else ""
    return (
        f"| {named} | {told} | {_plain(getattr(given, 'help', '')).replace('|', chr(92) + '|')} |"
    )


def _plain(text: str | None) -> str:
    return re.sub(r"([<\[])", r"\\\1", " ".join((text or "").split("\f")[0].split()))
