"""Whether the package of a pipeline keeps the rules of names and files, read without running it."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_KINDS = {
    "BaseAgent": "Agent",
    "SubThreadAgent": "Agent",
    "StateHandler": "Handler",
    "SubThreadPreparationHandler": "Handler",
    "SubThreadExecutionHandler": "Handler",
    "NestedSubThreadHandler": "Handler",
    "InteractionUnit": "Unit",
}
_FILES = {
    "Agent": "_agent.py",
    "Handler": "_state_handlers.py",
    "Unit": "_interaction_units.py",
}
_ABSTRACT = ("Helper", "Processor", "Manager", "ProcessAgent", "ProcessingUnit")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_CAMEL = re.compile(r"([A-Z][a-z0-9]*)+")
_PROMPT = "_system_prompt.md"
_BUILT_IN = ("prepare_subthread", "execute_subthread", "initial_phase", "completed")
_STARTING = {
    "SubThreadPreparationHandler": "prepare_subthread",
    "SubThreadExecutionHandler": "execute_subthread",
}
"""The two handlers that start a sub-thread together, with the phases that they have from Replan."""


@dataclass(frozen=True, order=True)
class Finding:
    """What a package does that the rules forbid."""

    file: str  # the file, relative to the package
    line: int  # the line, from 1
    problem: str  # what is wrong
    fix: str  # what to do

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}. {self.fix}"


class _Class(NamedTuple):
    """A class of a package."""

    name: str
    path: Path
    line: int
    bases: list[str]


class _Named(NamedTuple):
    """A name that is in a file: a phase, or the agent of a sub-thread."""

    path: Path
    line: int
    name: str


@dataclass
class _Package:
    """What the files of a package declare."""

    folder: Path
    classes: list[_Class] = field(default_factory=list[_Class])
    phases: list[_Named] = field(default_factory=list[_Named])  # that are handled
    following: list[_Named] = field(default_factory=list[_Named])  # that are said to follow
    made: list[_Named] = field(default_factory=list[_Named])  # classes of which objects are made
    below: list[_Named] = field(default_factory=list[_Named])  # agents of sub-threads
    # The classes that handle phases, each with the phase.
    handling: list[tuple[_Named, str]] = field(default_factory=list[tuple[_Named, str]])
    prompts: list[_Named] = field(default_factory=list[_Named])  # files that the code names

    def phases_of(self, folder: Path) -> set[str]:
        return {use.name for use in self.phases if use.path.parent == folder}

    def meant(self, name: str, path: Path) -> _Class | None:
        """The class of a name: of the folder of a file, else of another one; None if of none."""
        named = [
            class_definition for class_definition in self.classes if class_definition.name == name
        ]
        near = [
            class_definition
            for class_definition in named
            if class_definition.path.parent == path.parent
        ]
        return next(iter(near or named), None)

    def base(self, name: str, path: Path, seen: tuple[str, ...] = ()) -> str:
        """The class of Replan that a class derives from; empty if there is none."""
        found = None if name in seen else self.meant(name, path)
        if found is None:
            return name if name in _KINDS else ""
        bases = (self.base(base, found.path, (*seen, name)) for base in found.bases)
        return next((base for base in bases if base), "")

    def kind(self, name: str, path: Path) -> str:
        """The suffix that a class must have; empty for one that is not a component."""
        return _KINDS.get(self.base(name, path), "")

    def finding(self, path: Path, line: int, problem: str, fix: str) -> Finding:
        return Finding(str(path.relative_to(self.folder)), line, problem, fix)


def check_pipeline(package: Path | str) -> None:
    """Check the names and files of a pipeline's package; its code is read, and not run.

    A component derives from the base classes of Replan, a handler from them alone, and has the
    suffix of its kind, in a file of this kind. A folder is one level: it has one file each for its
    agent, its state handlers and, in a sub-thread, its interaction units. The agent of a sub-thread
    is in a folder below its handler. Phases are words with underscores, and each phase that
    follows has a handler in its folder, which is named after it. The handlers that prepare and
    execute a sub-thread are used together. A prompt is a file of the package's `prompts` that is
    named after a phase. Each prompt that the code names is there; if code makes the name from a
    phase, there is one for each phase of a `StateHandler`.

    Args:
        package: The folder of the package.

    Raises:
        AssertionError: Lists each finding with file, line and fix.
        FileNotFoundError: There is no such folder.
    """
    folder = Path(package)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder '{folder}'. Give the folder of a package.")
    findings = sorted({*_findings(_Package(folder))})
    assert not findings, "\n".join(
        [f"{len(findings)} findings in {folder.name}:", *map(str, findings)]
    )


def _findings(found: _Package) -> Iterator[Finding]:
    places = {path: path.relative_to(found.folder) for path in sorted(found.folder.rglob("*.py"))}
    for path in [path for path, place in places.items() if "tests" not in place.parts]:
        try:
            tree = ast.parse(path.read_text("utf-8"), str(path))
        except (SyntaxError, UnicodeDecodeError) as error:
            line = getattr(error, "lineno", None) or 1
            yield found.finding(path, line, f"it is not Python: {error}", "Correct the file.")
            continue
        for node in ast.walk(tree):
            _declare(found, path, node)
    for class_definition in found.classes:
        yield from _class_findings(found, class_definition)
    yield from _phase_findings(found)
    yield from _level_findings(found)
    yield from _folder_findings(found)
    yield from _prompt_findings(found)


def _declare(found: _Package, path: Path, node: ast.AST) -> None:
    """Take in what a piece of code declares: a class, or the phases of a handler."""
    if isinstance(node, ast.ClassDef):
        _declare_class(found, path, node)
    elif isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "create":
            func = func.value
        found.made.append(_Named(path, node.lineno, _name_of(func)))
        for keyword in node.keywords:
            _take_phase(found, path, keyword.arg or "", keyword.value, _name_of(func))
    elif isinstance(node, ast.Constant) and str(node.value).endswith(_PROMPT):
        found.prompts.append(_Named(path, node.lineno, Path(str(node.value)).name))


def _declare_class(found: _Package, path: Path, node: ast.ClassDef) -> None:
    bases = [name for expression in node.bases if (name := _name_of(expression))]
    found.classes.append(_Class(node.name, path, node.lineno, bases))
    for base in bases:
        if base in _STARTING:
            found.phases.append(_Named(path, node.lineno, _STARTING[base]))
    for target, value in _assigned(node.body):
        if target == "sub_thread_agent":
            found.below.append(_Named(path, value.lineno, _name_of(value)))
        _take_phase(found, path, target, value, node.name)


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            yield from ((_name_of(target), statement.value) for target in statement.targets)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield _name_of(statement.target), statement.value


def _take_phase(found: _Package, path: Path, name: str, value: ast.expr, of: str) -> None:
    """Take in a phase that a class declares, or that an object of it is made with."""
    kinds = {
        "phase": found.phases,
        "next_phase": found.following,
        "other_phases": found.following,
        "phase_suggestion": found.following,
    }
    values = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    for expression in values if name in kinds else ():
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            kinds[name].append(_Named(path, expression.lineno, expression.value))
            if name == "phase":
                found.handling.append((_Named(path, expression.lineno, of), expression.value))


def _name_of(node: ast.expr) -> str:
    """The last part of a name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _class_findings(found: _Package, of: _Class) -> Iterator[Finding]:
    name, path, line, _ = of
    kind = found.kind(name, path)
    suffix = next((file for file in _FILES if name.endswith(file)), "")
    problems: list[tuple[str, str]] = []
    if kind and not name.endswith(kind):
        problems.append(
            (f"{name} is a component and does not end in '{kind}'", f"Call it {name}{kind}.")
        )
    elif suffix and suffix != kind:
        bases = ", ".join(kind for kind, of in _KINDS.items() if of == suffix)
        problems.append(
            (f"{name} has none of Replan's base classes", f"Derive it from one of: {bases}.")
        )
    is_vague = any(word in name for word in _ABSTRACT) or name == kind or name in _KINDS
    if is_vague or (kind and not _CAMEL.fullmatch(name)):
        problems.append(
            (f"{name} does not say what it is about, in CamelCase", "Name it after its business.")
        )
    if kind and not path.name.endswith(_FILES[kind]):
        problems.append(
            (f"{name} is in {path.name}", f"Put it into a file that ends in {_FILES[kind]}.")
        )
    for problem, fix in (*problems, *_base_findings(found, of, kind)):
        yield found.finding(path, line, problem, fix)


def _base_findings(found: _Package, of: _Class, kind: str) -> Iterator[tuple[str, str]]:
    """Check what a handler or an agent derives from."""
    if kind == "Handler":
        fix = "Derive it from a class of Replan, and put what handlers share into a function."
        for base in [base for base in of.bases if _KINDS.get(base) != kind]:
            yield f"{of.name} has the parent {base}", fix
    if kind == "Agent":
        wanted = "BaseAgent" if of.path.parent == found.folder else "SubThreadAgent"
        if found.base(of.name, of.path) != wanted:
            yield f"{of.name} is of the wrong base class for its level", f"Derive it from {wanted}."


def _phase_findings(found: _Package) -> Iterator[Finding]:
    """Check that phases are named well, and that those that follow are handled."""
    for path, line, phase in found.following:
        if phase not in found.phases_of(path.parent) | {"completed"}:
            fix = "Write a handler with this phase, in the folder of its level."
            yield found.finding(path, line, f"no handler has the phase '{phase}'", fix)
    for path, line, phase in found.phases:
        if phase not in _BUILT_IN and not (_SNAKE.fullmatch(phase) and "_" in phase):
            problem = f"the phase '{phase}' is not a verb and a noun in snake_case"
            yield found.finding(path, line, problem, "Name it like data_preparation.")
    for (path, line, name), phase in _own_handlers(found):
        wanted = "".join(word.capitalize() for word in phase.split("_")) + "Handler"
        if name != wanted:
            problem = f"{name} handles the phase '{phase}' and is not named after it"
            yield found.finding(path, line, problem, f"Call it {wanted}.")


def _own_handlers(package: _Package) -> Iterator[tuple[_Named, str]]:
    """The handlers of the package with their phases, without those that Replan names itself."""
    for use, phase in package.handling:
        if phase not in _BUILT_IN and package.kind(use.name, use.path) == "Handler":
            yield use, phase


def _level_findings(found: _Package) -> Iterator[Finding]:
    """Check that the parts of a level are in its folder, and levels below in folders below."""
    for path, line, name in found.below:
        agent = found.meant(name, path)
        if agent is not None and agent.path.parent.parent != path.parent:
            problem = f"{name} is not in a folder below this one"
            yield found.finding(path, line, problem, "Give the sub-thread its own folder here.")
    for path, line, name in found.made:
        part = found.meant(name, path) if found.kind(name, path) in ("Handler", "Unit") else None
        if part is not None and part.path.parent != path.parent:
            problem = f"{name} is in the folder of another level"
            yield found.finding(path, line, problem, "Put it next to the agent that uses it.")
    bases = {found.base(use.name, use.path): use for use in found.made}
    used = [beginning for beginning in _STARTING if beginning in bases]
    if len(used) == 1:
        (missing,) = {*_STARTING} - {*used}
        path, line, name = bases[used[0]]
        problem = f"{name} is used without a handler for '{_STARTING[missing]}'"
        yield found.finding(path, line, problem, f"Register a {missing}, too.")


def _folder_findings(package: _Package) -> Iterator[Finding]:
    """Check that each folder with an agent is one level, with one file of each kind."""
    agents = [
        class_definition.path
        for class_definition in package.classes
        if package.kind(class_definition.name, class_definition.path) == "Agent"
    ]
    if not agents:
        yield package.finding(package.folder, 1, "the package has no agent", "Write a BaseAgent.")
    folders = {path.parent for path in (*agents, *package.folder.rglob("*_agent.py"))}
    for path in sorted(folders):
        files = [*path.glob("*_agent.py")]
        if path != package.folder and not _SNAKE.fullmatch(path.name):
            yield package.finding(path, 1, "the folder is not named in snake_case", "Rename it.")
        if (
            max(len(files), len([file_path for file_path in agents if file_path.parent == path]))
            > 1
        ):
            yield package.finding(
                path, 1, "the folder has agents of two levels", "Give each a folder."
            )
        if len(files) == 1:
            yield from _file_findings(package, files[0])


def _file_findings(package: _Package, agent: Path) -> Iterator[Finding]:
    """Check the files of a level, which have the name of its agent's."""
    folder, prefix = agent.parent, agent.name.removesuffix(_FILES["Agent"])
    for kind in ("Handler", "Unit"):
        wanted = f"{prefix}{_FILES[kind]}"
        if not (folder / wanted).exists() and (kind == "Handler" or folder != package.folder):
            fix = "Put those of the level there, next to its agent."
            yield package.finding(folder, 1, f"the folder has no file {wanted}", fix)
        for path in sorted({*folder.glob(f"*{_FILES[kind]}")} - {folder / wanted}):
            problem = f"it is named after another agent than {agent.name}"
            yield package.finding(path, 1, problem, f"Put what it has into {wanted}.")


def _prompt_findings(found: _Package) -> Iterator[Finding]:
    """Check that each prompt is there, is named after a phase, and is with the others."""
    folder = found.folder / "prompts"
    missing = {(use.name, use) for use in found.prompts if use.name != _PROMPT}
    if len(missing) < len({*found.prompts}):
        # Some code joins the name of a phase and the end of a file's name.
        missing |= {
            (f"{phase}{_PROMPT}", use)
            for use, phase in _own_handlers(found)
            if found.base(use.name, use.path) == "StateHandler"
        }
    for name, (path, line, _) in sorted(missing):
        if not (folder / name).exists():
            problem = f"the prompt {name} is not in the folder 'prompts' of the package"
            yield found.finding(path, line, problem, "Write it there.")
    phases = {use.name for use in found.phases}
    named = [*found.folder.rglob("prompts/*"), *found.folder.rglob("*_system_prompt.*")]
    for path in sorted({path for path in named if path.is_file()}):
        phase = path.name.removesuffix(_PROMPT)
        if not path.name.endswith(_PROMPT) or phase not in phases:
            fix = f"Call it <phase>{_PROMPT}."
            yield found.finding(path, 1, "it is named after no phase", fix)
        elif path.parent != found.folder / "prompts":
            problem = "it is not in the folder 'prompts' of the package"
            yield found.finding(path, 1, problem, "Move it there.")
