"""`replan new`: packages to start from, such as that of a pipeline."""

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import attrgetter
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from replan.base.errors import InputError
from replan.cli.shared.process import as_command

new = typer.Typer(help="Create a starter package.", no_args_is_help=True)

_LONGEST_NAME, _SHOWN = 60, 40

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@new.callback()
def _new() -> None:
    """Create a starter package."""


@new.command("pipeline")
@as_command
def pipeline(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the package, such as tea_praise.")
    ],
    *,
    nested: Annotated[
        bool, typer.Option("--nested", help="Add a deeper sub-thread in the second phase.")
    ] = False,
    directory: Annotated[
        Path,
        typer.Option("--dir", metavar="DIR", file_okay=False, help="The folder to write into."),
    ] = Path(),
) -> None:
    """Write the package of a pipeline: agents, handlers, units, prompts, and a test that passes."""
    package = write_pipeline(name, directory, nested=nested)
    main = f"{name}.{name}_agent:{_class_name(name)}Agent"
    where = "" if directory == Path() else f" --dir {directory}"
    typer.echo(f"wrote {package}\nNow try: python -m pytest {package}")
    typer.echo(f"and: replan chat --pipeline {main}{where} --model MODEL")


def write_pipeline(name: str, directory: Path, *, nested: bool) -> Path:
    """Write the package into a folder of its name; return the folder.

    Raises:
        InputError: It is not a name of a package, or something has this name.
    """
    _check_name(name)
    package = directory / name
    if package.exists():
        raise InputError(f"'{package}' exists already; nothing was written. Choose another name.")
    _check_hides_nothing(name, directory)
    words = {"name": name, "Name": _class_name(name)}
    texts = starter_texts("pipeline/common", words)
    texts |= starter_texts(f"pipeline/{'nested' if nested else 'plain'}", words)
    try:
        for path, text in texts.items():
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"The package cannot be written: {error}.") from error
    return package


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME:
        problem = f"NAME: it has {len(name):,} characters; at most {_LONGEST_NAME} can be used"
        raise InputError(f"{problem} (got '{name[:_SHOWN]}...'). Choose a shorter name.")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        fix = "Write small letters, digits and underscores, as in tea_praise."
        raise InputError(f"NAME: '{name}' cannot be the name of a package. {fix}")


def _check_hides_nothing(name: str, directory: Path) -> None:
    # Not where packages are written or tried: only what is installed.
    new_folders = {Path.cwd(), directory.resolve()}
    folders = [path for path in sys.path if path and Path(path).resolve() not in new_folders]
    if name in sys.stdlib_module_names:
        owner = "Python's standard library has a module"
    elif PathFinder.find_spec(name, folders) is not None:
        owner = "an installed package has a module"
    else:
        return
    fix = f"Choose another name, such as {name}_pipeline."
    raise InputError(f"NAME: {owner} '{name}', which the package would hide. {fix}")


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def starter_texts(starter: str, words: Mapping[str, str] | None = None) -> dict[Path, str]:
    """The files of a starter by their paths, with the names of a package filled in."""
    return dict(_texts(files("replan.cli.starters").joinpath(starter), words))


def _texts(
    folder: Traversable, words: Mapping[str, str] | None, target: Path = Path()
) -> Iterator[tuple[Path, str]]:
    # No file system promises an order.
    for file in sorted(folder.iterdir(), key=attrgetter("name")):
        path = target / file.name.removesuffix(".txt")
        text = "" if file.is_dir() else file.read_text("utf-8")
        if words is not None:
            path = target / path.name.replace("NAME", words["name"])
            text = Template(text).substitute(words)
        if file.is_dir():
            yield from _texts(file, words, path)
        else:
            yield path, text
