"""The order of a run, in a form that can be stored and executed again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from langchain_core.messages import HumanMessage
from pydantic import Field, JsonValue, ValidationError

from replan.assembly.graphs import Graph, build_graph
from replan.base.declared.mistakes import code_reason_fix
from replan.base.errors import InputError
from replan.base.values import Value, restored
from replan.cli.user_files.plan_text import (
    is_other_file,
    is_plan_path,
    is_team_path,
    read_plan_text,
)
from replan.log.labels import SESSION
from replan.plan.markdown.document import PlanDocument
from replan.ports.run_book import DEFAULT, PYTHON, RunRecord, TeamIdentity
from replan.runs.asked.attached import block_of, largest_of
from replan.runs.run_input import stored_input
from replan.runs.team_on_record import TERMINAL_OPTIONS, is_of_terminal, team_name
from replan.state.limits import Budget, Limits, RunSettings
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team_file import TeamFile, read_team_file
from replan.traces.option import Traces

_FIX = "Put it into a folder that the specialists may read, and name that with --dir."


def file_blocks(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read files into content blocks of LangChain: texts, pictures and PDFs."""
    return [_block_of_file(path) for path in paths]


def _block_of_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(largest_of(path.name) + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(f"--file {path} cannot be read: {why}. Name a file.") from error
    return block_of(path.name, content, f"--file {path}", _FIX)


SIGNATURE = "signature"
"""The field of a stored order with its author."""

_NO_OPTIONS = (SIGNATURE, "input")


class Order(Value):
    """All that is needed to build a run's graph again and to start it; nothing secret."""

    task: str  # the request, or the path of the plan document as it was given
    plan: str | None = None  # the plan document's text, if there is one
    team: Path | None = None  # a team file; else the default team
    model: str | None = None  # the host's model; none: the team file's
    base_url: str | None = None  # a server that speaks the OpenAI protocol
    # The folder that specialists may read; none: the team file's, else this one.
    directory: Path | None = None
    out: Path | None = None  # the folder for reports
    plan_out: Path | None = None
    settings: RunSettings | None = None  # what this run may do, from the options of the terminal
    files: tuple[Path, ...] = ()  # what goes with the task
    labels: dict[str, str] = Field(default_factory=dict)  # what the run is found by

    @property
    def folder(self) -> Path | None:
        """The folder that specialists may read; None: that of the team file."""
        return Path() if self.team is None and self.directory is None else self.directory

    @property
    def title(self) -> str:
        """The subject of the run in one line."""
        return self._goal or " ".join(self.task.split())

    @property
    def input(self) -> dict[str, Any]:
        """The input of the graph."""
        if self.plan is None:
            return {"messages": [self._message(self.task)]}
        # A run that continues from another one has a request, and the plan that was made of it.
        asked = self._goal or self.task if is_plan_path(self.task) else self.task
        return {"messages": [self._message(asked)], "plan": self.plan}

    @property
    def _goal(self) -> str:
        return "" if self.plan is None else PlanDocument.recover(self.plan).plan.goal

    def _message(self, text: str) -> HumanMessage:
        if not self.files:
            return HumanMessage(text)
        return HumanMessage([{"type": "text", "text": text}, *file_blocks(self.files)])


@dataclass(frozen=True)
class Prepared:
    """A graph that can run, the folder that its files are relative to, and its host."""

    graph: Graph
    workspace: Path
    model: object


def read_order(task: str, **fields: Any) -> Order:
    """Read the options of the terminal."""
    if not task.strip():
        raise InputError("The task is empty. Write what to do, or name a plan document.")
    if is_team_path(task):
        raise InputError(f"'{task}' is a file, not a task. Write: replan run TASK --team {task}")
    if is_other_file(task):
        fix = f"Give it with a task: replan run TASK --file {task}"
        raise InputError(
            f"'{task}' is a file, not a task. A plan document has a name that ends in .md. {fix}"
        )
    file_blocks(fields.get("files", ()))
    plan = read_plan_text(Path(task)) if is_plan_path(task) else None
    # The shell may hand over bytes that are not text.
    return Order(task=task.encode("utf-8", "replace").decode("utf-8"), plan=plan, **fields)


def stored_form(order: Order) -> JsonValue:
    """Return an order as it is kept: paths that lead there from everywhere, and no secret."""
    paths = {
        name: None if path is None else path.absolute()
        for name, path in {
            "team": order.team,
            "out": order.out,
            "plan_out": order.plan_out,
            # Without a team file the folder is the one where the run began.
            "directory": order.directory or (Path() if order.team is None else None),
        }.items()
    }
    files = tuple(path.absolute() for path in order.files)
    changes: dict[str, Any] = {**paths, "files": files} if files else paths
    address = order.base_url if _is_open(order.base_url) else None
    return order.replace(**changes, base_url=address).model_dump(mode="json", exclude_unset=True)


def order_on_record(order: Order) -> JsonValue:
    """Return an order as a run keeps it: with its input, for whoever continues it elsewhere."""
    form = cast("dict[str, JsonValue]", stored_form(order))
    return {**form, **stored_input(order.input)}


def restore_order(record: JsonValue, run_id: str) -> Order:
    """Read a stored order."""
    if isinstance(record, dict):
        record = {name: value for name, value in record.items() if name not in _NO_OPTIONS}
    # Another program's own order may have a task, too, and more that must not be left out.
    is_ours = isinstance(record, dict) and record.keys() >= TERMINAL_OPTIONS
    try:
        return restored(Order, record) if is_ours else Order.model_validate(record)
    except ValidationError as error:
        raise InputError(
            f"The run {run_id} was not begun by this version of `replan run`, "
            "so its graph cannot be built again here. Continue it with the program that began it."
        ) from error


def order_of(record: RunRecord) -> Order:
    """The order by which a run continues: that of its terminal, or the file of its team alone.

    Raises:
        InputError: It is a turn of a session, or no team is on record.
    """
    run, order = record.run_id[:8], record.order
    if SESSION in record.labels:
        session = record.labels[SESSION]
        raise InputError(
            f"The run {run} is a turn of a session. Continue that: replan chat --session {session}."
        )
    has_own = isinstance(order, dict) and "task" in order
    if has_own or record.team is None:
        return restore_order(order, run)
    known_by = record.team.source
    path = None if known_by in (DEFAULT, PYTHON) else Path(known_by)
    return Order(task=record.title or run, team=path)


def check_team(order: Order, record: RunRecord, team: TeamIdentity) -> None:
    """Refuse to continue a run of another program with another team.

    Raises:
        InputError: It has another name.
    """
    name = team_name(record)
    if is_of_terminal(record) or record.team is None:
        return
    is_known = order.team is not None or record.team.source == DEFAULT
    if name != team.name or not is_known:
        there = f"{order.team} is '{team.name}'" if is_known else "its file is not on record"
        raise InputError(
            f"The run {record.run_id[:8]} is of the team '{name}', and {there}. Name the file of "
            f"'{name}' with --team."
        )


def prepare(
    order: Order, environment: Mapping[str, str], traces: Traces | None = None, **keeping: Any
) -> Prepared:
    """Build the graph of an order; `traces` take the place of those of its team."""
    team = read_team(order, environment, traces)
    graph = build_graph(team.config, models=team.models, **keeping)
    workspace = Path(team.config.workspace or Path())
    return Prepared(graph, workspace, team.config.host.model)


def read_team(
    order: Order, environment: Mapping[str, str], traces: Traces | None = None
) -> TeamFile:
    """Read the team of an order; `traces` take the place of its own."""
    path = order.team or DEFAULT_TEAM
    team = read_team_file(path, environment, directory=order.folder, out=order.out)
    team = team.with_model(order.model, order.base_url)
    if traces is None:
        return team
    return replace(team, config=team.config.model_copy(update={"traces": traces}))


def read_settings(
    limits: list[str], approve: str | None, user: str | None = None
) -> RunSettings | None:
    """Read what one run is to do otherwise than its team; None if nothing."""
    options: dict[str, Any] = {"limits": read_limits(limits), "approval": approve, "user": user}
    fields = {name: value for name, value in options.items() if value is not None}
    return RunSettings(**fields) if fields else None


def read_limits(texts: list[str]) -> Limits | None:
    """Read limits such as `max_model_calls=50`; `none` takes a limit away where that is allowed."""
    names = [*Limits.model_fields, *(f"per_step.{name}" for name in Budget.model_fields)]
    names.remove("per_step")
    limits: dict[str, Any] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if name in names and not sign:
            raise InputError(f"The limit {name} has no value. Write {name}=NUMBER.")
        if name not in names:
            near = ", ".join(get_close_matches(name, names, cutoff=0.7) or names)
            raise InputError(f"'{text}' is not a limit. Write NAME=VALUE with one of: {near}.")
        part = limits.setdefault("per_step", {}) if "." in name else limits
        part[name.rpartition(".")[2]] = None if value.casefold() == "none" else value
    try:
        return Limits.model_validate(limits) if limits else None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        value = "empty" if first["input"] == "" else first["input"]
        code, reason, fix = code_reason_fix(first, "")
        fix = f"Write {name}=NUMBER." if code == "wrong_type" else fix
        reason = f"{reason[:1].lower()}{reason[1:]}"
        raise InputError(f"The limit {name} cannot be {value}: {reason} {fix}") from error


def _is_open(address: str | None) -> bool:
    """Whether an address reveals no secret: it has neither a password nor a query."""
    if address is None:
        return True
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return "@" not in parts.netloc and not parts.query
