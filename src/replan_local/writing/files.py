"""Names and places of the files of a report, and how they are written."""

import hashlib
import os
import re
import secrets
import unicodedata
from pathlib import Path

from replan.state.results import ExecutionContext

_LONGEST_SLUG = 40


def file_stem(title: str, context: ExecutionContext) -> str:
    """A name of our own letters; its end is the step's own, so that no run meets another's file."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = "-".join(re.findall(r"[a-z0-9]+", ascii_title.lower()))[:_LONGEST_SLUG].strip("-")
    key = context.idempotency_key or f"{context.run_id}/{context.plan_step.id}"
    mark = hashlib.sha256(key.encode()).hexdigest()[:12]
    return f"{slug or 'report'}-{mark}"


def write_whole(path: Path, text: str) -> None:
    """Put the whole file in its place at once; whoever reads meanwhile sees the old one or this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened like any file, so that the umask says who may read it.
    temporary = path.with_name(f".report-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def place_of(path: Path, workspace: str | None) -> str:
    """The file relative to the workspace, or its whole path where it lies outside."""
    full = path.resolve()
    root = Path(workspace).resolve() if workspace else None
    inside = root is not None and full.is_relative_to(root)
    return full.relative_to(root).as_posix() if inside and root else str(full)
