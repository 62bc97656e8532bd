"""Versions of a team: each is named by the content of its file."""

from pathlib import Path
from typing import NamedTuple

from replan.base.declared.yaml_source import read_text
from replan.base.errors import ConfigurationError, TeamFileError
from replan.ports.run_book import digest_of
from replan.workers.queue import Queue


class Version(NamedTuple):
    """A version of a team."""

    digest: str  # what it is named by: the first 16 hexadecimal digits of the SHA-256 of its file
    path: Path  # its file
    content: str  # the text of its file


def version_of(path: Path) -> Version:
    """The version of the team in a file."""
    content = read_text(path, TeamFileError, "Check the path.")
    return Version(digest_of(content), path, content)


async def check_published(queue: Queue, version: Version) -> None:
    """Refuse an unpublished version of a team."""
    if not await queue.is_published(version.digest):
        problem = f"This version of the team ({version.digest}) was not published."
        fix = f"Do it with `replan team publish {version.path}`, with the same --storage."
        raise ConfigurationError("team", str(version.path), problem, fix)
