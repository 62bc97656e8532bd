"""Files that hold what is shown, one for each view: a change of a view is a change that one reads.

`REPLAN_TEST_WRITE_SNAPSHOTS=1 make test` writes them anew. All times in them are those of UTC.
"""

import os
from pathlib import Path


def check_golden(path: Path, sections: dict[str, str]) -> None:
    text = "".join(f"=== {name}\n{shown.rstrip()}\n\n" for name, shown in sections.items())
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
