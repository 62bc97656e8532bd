"""Where and how a run is shown, asked about and stopped."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from replan.user_files.place import Place, short
from replan.views.live.manner import Manner


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where and how a run is shown, asked about and stopped."""

    environment: Mapping[str, str]
    input: TextIO
    output: TextIO
    errors: TextIO  # where complaints go, and what says how to continue
    place: Place
    manner: Manner = field(default_factory=Manner)
    log_file: Path | None = None
    grace: float = 10.0  # seconds that running steps get when the run is stopped

    @property
    def asks(self) -> bool:
        """Whether a person is there to answer."""
        return self.input.isatty() and self.output.isatty() and not self.manner.as_json

    def resume(self, run_id: str) -> str:
        """The command that continues a run; empty if none does."""
        return f"replan resume {short(run_id)}{self.place.option}" if self.place.outlives else ""

    @property
    def shows_tokens(self) -> bool:
        """Whether texts are shown piece by piece."""
        return self.output.isatty() or self.manner.as_json or self.manner.verbose

    @property
    def shows_all(self) -> bool:
        """Whether more than the answer is wanted, by a person."""
        return not (self.manner.quiet or self.manner.as_json)

    def complain(self, *lines: str) -> None:
        """Write lines that do not belong to the run, immediately."""
        self.errors.write("".join(f"{line}\n" for line in lines))
        self.errors.flush()
