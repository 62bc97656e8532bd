"""A report: its text, and how its file is written."""

import hashlib
import re
import time
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from replan.base.texts.files import replace_file
from replan.plan.statuses import excerpt
from replan.ports.run_context import Folders
from replan.state.results import Artifact
from replan_local.refusals import CannotAnswerError
from replan_local.searching import REPORT_MARK

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LONGEST_TITLE, _LONGEST_SLUG = 90, 40


def text_of(inputs: Mapping[int, str]) -> str:
    """The results of steps, each under the number of its step."""
    found = [(step, text) for step, given in sorted(inputs.items()) if (text := given.strip())]
    return "\n\n".join(f"## Step {step}\n\n{text}" for step, text in found)


def write_report(title: str, text: str, *, folders: Folders, key: str) -> Artifact:
    """Write a report; with the same title and key, the same file again."""
    if not text.strip():
        raise CannotAnswerError(
            "There is nothing to report: the text is empty. A step reports the results of the "
            "steps that it comes after."
        )
    heading = excerpt(" ".join(title.split()), _LONGEST_TITLE) or "Report"
    # The name does not depend on the results: the same step writes the same file again.
    path = folders.out / f"{_stem(title, key)}.md"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    parts = (f"# {_inert(heading)}", date, _inert(text.strip()), f"{REPORT_MARK}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, "\n\n".join(parts).encode())
    return Artifact(path=_place(path, folders), title=heading, media_type="text/markdown")


def _inert(text: str) -> str:
    """Write tags and pictures as entities, so that HTML is shown and nothing is loaded."""
    return _TAG.sub("&lt;", text).replace("![", "&#33;[")


def _stem(title: str, key: str) -> str:
    """A name of our own letters; its end is the work's own, so that no run meets another's file."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = "-".join(re.findall(r"[a-z0-9]+", ascii_title.lower()))[:_LONGEST_SLUG].strip("-")
    return f"{slug or 'report'}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _place(path: Path, folders: Folders) -> str:
    """The file relative to the workspace, or its whole path where it lies outside."""
    full, root = path.resolve(), folders.workspace.resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else str(full)
