"""`replan export`: write a run into one file, without secrets, which `show` opens elsewhere."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared.options import RunArgument, StorageOption
from replan.cli.shared.process import end_with, place
from replan.errors import InputError


def export(
    run_id: RunArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            dir_okay=False,
            help="The file to write; without it, the run goes to a pipe.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an existing file.")
    ] = False,
    storage: StorageOption = None,
) -> None:
    """Export a run as JSON, without secrets; `replan show FILE` opens it anywhere."""

    def written() -> int:
        if output is None and sys.stdout.isatty():
            raise InputError(
                "An export is not printed on a terminal. Name a file with -o FILE, or use a pipe."
            )
        from replan.cli.kept.place import now
        from replan.cli.kept.whole import all_texts, loaded
        from replan.runs.travel.export import exported

        text = exported(asyncio.run(loaded(run_id, place(storage), all_texts)), now())
        if output is None:
            sys.stdout.write(text)
        else:
            _write(output, text, force=force)
        return 0

    end_with(written)


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a file; a new one is read by this user only."""
    try:
        other = os.O_TRUNC if force else os.O_EXCL
        number = os.open(path, os.O_WRONLY | os.O_CREAT | other, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        fix = "Choose another name, or overwrite it with --force."
        raise InputError(f"'{path}' exists already. {fix}") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
    typer.echo(f"wrote {path}")
