"""Where and how a run is shown, asked about and stopped, and the options of commands for that."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replan.cli.shared import options
from replan.cli.shared.process import location_from

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TextIO

    from replan.cli.user_files.storage_location import StorageLocation
    from replan.views.live.manner import Manner
    from replan.views.live.reporters import Reporter


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where and how a run is shown, asked about and stopped."""

    environment: Mapping[str, str]
    input: TextIO
    output: TextIO
    errors: TextIO  # where complaints go, and what says how to continue
    location: StorageLocation
    manner: Manner
    log_file: Path | None
    grace: float  # seconds that running steps get when the run is stopped

    @property
    def asks(self) -> bool:
        """Whether a person is there to answer."""
        return self.input.isatty() and self.output.isatty() and not self.manner.as_json

    def resume(self, run_id: str) -> str:
        """The command that continues a run; empty if none does."""
        from replan.cli.user_files.storage_location import short

        return (
            f"replan resume {short(run_id)}{self.location.option}" if self.location.outlives else ""
        )

    @property
    def shows_tokens(self) -> bool:
        """Whether texts are shown piece by piece."""
        return self.output.isatty() or self.manner.as_json or self.manner.verbose

    @property
    def shows_all(self) -> bool:
        """Whether more than the answer is wanted, by a person."""
        return not (self.manner.quiet or self.manner.as_json)

    def reporter(self, workspace: Path) -> Reporter:
        """What reports one run or turn here."""
        from replan.cli.user_files.storage_location import now
        from replan.views.live.manner import reporter

        return reporter(
            self.manner,
            self.output,
            self.errors,
            workspace=workspace,
            terminal=self.environment.get("TERM", ""),
            clock=now,
        )

    def complain(self, *lines: str) -> None:
        """Write lines that do not belong to the run, immediately."""
        self.errors.write("".join(f"{line}\n" for line in lines))
        self.errors.flush()


def site_of(
    *,
    grace: options.Grace = 10.0,
    storage: options.Storage = None,
    as_json: options.JsonLines = False,
    plain: options.Plain = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> Site:
    """The site of this process, from its options."""
    from replan.views.live.manner import Manner

    return Site(
        environment=os.environ,
        input=sys.stdin,
        output=sys.stdout,
        errors=sys.stderr,
        location=location_from(storage),
        manner=Manner(as_json=as_json, plain=plain, quiet=quiet, verbose=verbose),
        log_file=log_file,
        grace=grace,
    )
