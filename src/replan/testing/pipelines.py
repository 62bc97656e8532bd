"""Whether the package of a pipeline keeps the rules of names and files, read without running it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
_PROMPT = "_system_prompt.md"
_BUILT_IN = ("prepare_subthread", "execute_subthread", "initial_phase", "completed")


@dataclass(frozen=True, order=True)
class Finding:
    """What a package does that the rules forbid.

    Attributes:
        file: The file, relative to the package.
        line: The line, from 1.
        problem: What is wrong.
        fix: What to do.
    """

    file: str
    line: int
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}. {self.fix}"


@dataclass
class _Package:
    """What the files of a package declare."""

    bases: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    # By folder: the phases that are handled, and those that are said to follow.
    phases: dict[Path, set[str]] = field(default_factory=dict[Path, set[str]])
    following: list[tuple[Path, int, str]] = field(default_factory=list[tuple[Path, int, str]])

    @property
    def known(self) -> set[str]:
        """All phases of the package."""
        return {phase for phases in self.phases.values() for phase in phases}

    def kind(self, name: str, seen: tuple[str, ...] = ()) -> str:
        """The suffix that a class must have; empty for one that is no component."""
        if name in _KINDS:
            return _KINDS[name]
        above = () if name in seen else self.bases.get(name, ())
        return next((kind for each in above if (kind := self.kind(each, (*seen, name)))), "")


def check_pipeline(package: Path | str) -> None:
    """Check the names and files of a pipeline's package; its code is read, and not run.

    A component derives from the base classes of Replan and has the suffix of its kind, in a file of
    this kind. A folder is one level: it has an agent and its state handlers. Phases are words with
    underscores, and each phase that follows has a handler in its folder. A file of `prompts` is
    named after a phase.

    Args:
        package: The folder of the package.

    Raises:
        AssertionError: Lists each finding with file, line and fix.
        FileNotFoundError: There is no such folder.
    """
    folder = Path(package)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder '{folder}'. Give the folder of a package.")
    findings = sorted(_findings(folder))
    assert not findings, "\n".join(
        [f"{len(findings)} findings in {folder.name}:", *map(str, findings)]
    )


def _findings(folder: Path) -> Iterator[Finding]:
    places = {path: path.relative_to(folder) for path in sorted(folder.rglob("*.py"))}
    files = [path for path, place in places.items() if "tests" not in place.parts]
    trees = {path: ast.parse(path.read_text("utf-8"), str(path)) for path in files}
    found = _Package()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            _declare(found, path, node)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for problem, fix in _of_class(found, path, node):
                    yield Finding(str(path.relative_to(folder)), node.lineno, problem, fix)
    yield from _of_phases(folder, found)
    yield from _of_folders(folder)
    yield from _of_prompts(folder, found)


def _declare(found: _Package, path: Path, node: ast.AST) -> None:
    """Take in what a piece of code declares: a class, or the phases of a handler."""
    own = found.phases.setdefault(path.parent, set())
    said: list[tuple[str, ast.expr | None]] = []
    if isinstance(node, ast.ClassDef):
        names = [each.id if isinstance(each, ast.Name) else "" for each in node.bases]
        names += [each.attr for each in node.bases if isinstance(each, ast.Attribute)]
        found.bases[node.name] = names
        # These two have their phases from Replan.
        built_in = {f"SubThread{each}Handler" for each in ("Preparation", "Execution")}
        own.update(_BUILT_IN[:2] if built_in & {*names} else ())
        said = [
            (target.id, each.value)
            for each in node.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        ]
    elif isinstance(node, ast.Call):
        said = [(each.arg or "", each.value) for each in node.keywords]
    for name, value in said:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if name == "phase":
                own.add(value.value)
            elif name == "next_phase":
                found.following.append((path, value.lineno, value.value))


def _of_class(found: _Package, path: Path, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    name, kind = node.name, found.kind(node.name)
    suffix = next((each for each in _FILES if name.endswith(each)), "")
    if kind and not name.endswith(kind):
        yield f"{name} is a component and does not end in '{kind}'", f"Call it {name}{kind}."
    elif suffix and suffix != kind:
        bases = ", ".join(each for each, of in _KINDS.items() if of == suffix)
        yield f"{name} has none of Replan's base classes", f"Derive it from one of: {bases}."
    if any(each in name for each in _ABSTRACT) or name == kind:
        yield f"{name} does not say what it is about", "Name it after its business."
    if kind and not path.name.endswith(_FILES[kind]):
        yield f"{name} stands in {path.name}", f"Put it into a file that ends in {_FILES[kind]}."


def _of_phases(folder: Path, found: _Package) -> Iterator[Finding]:
    """Check that phases are named well, and that those that follow are handled."""
    for path, line, phase in found.following:
        if phase not in found.phases.get(path.parent, set()) | {"completed"}:
            fix = "Write a handler with this phase, in the folder of its level."
            problem = f"no handler has the phase '{phase}'"
            yield Finding(str(path.relative_to(folder)), line, problem, fix)
    for phase in sorted(found.known - {*_BUILT_IN}):
        if not _SNAKE.fullmatch(phase) or "_" not in phase:
            problem = f"the phase '{phase}' is no verb and noun in snake_case"
            yield Finding(".", 1, problem, "Name it like data_preparation.")


def _of_folders(folder: Path) -> Iterator[Finding]:
    """Check that each folder with an agent is one level."""
    for path in sorted({each.parent for each in folder.rglob("*_agent.py")}):
        where = str(path.relative_to(folder))
        if path != folder and not _SNAKE.fullmatch(path.name):
            yield Finding(where, 1, "the folder is not named in snake_case", "Rename it.")
        if len([*path.glob("*_agent.py")]) > 1:
            yield Finding(where, 1, "the folder has agents of two levels", "Give each a folder.")
        if not [*path.glob("*_state_handlers.py")]:
            fix = "Put the handlers of the level beside its agent."
            yield Finding(where, 1, "the folder has no state handlers", fix)


def _of_prompts(folder: Path, found: _Package) -> Iterator[Finding]:
    """Check that each prompt is named after a phase."""
    for path in sorted(folder.rglob("prompts/*.md")):
        phase = path.name.removesuffix(_PROMPT)
        if not path.name.endswith(_PROMPT) or phase not in found.known:
            where = str(path.relative_to(folder))
            yield Finding(where, 1, "it is named after no phase", f"Call it <phase>{_PROMPT}.")
