"""Check types strictly: the programs of `examples/`, of README.md, and of `tests/typing`.

In `tests/typing` a wrong line says which error it is; a line that is no longer wrong is one, too.

.venv/bin/python .ci/typed_programs.py
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
BUILD = ROOT / "build" / "typed"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETTINGS = {
    "include": [".", "../../examples", "../../tests/typing"],
    "exclude": ["../../examples/teams"],
    "extraPaths": ["../../src"],
    # A program of several files imports them from its folder.
    "executionEnvironments": [
        {"root": f"../../examples/{folder.relative_to(EXAMPLES)}", "extraPaths": ["../../src"]}
        for folder in sorted({each.parent for each in EXAMPLES.rglob("*.py")} - {EXAMPLES})
        if folder.parent == EXAMPLES or not any(folder.parent.glob("*.py"))
    ],
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "reportMissingTypeStubs": False,
    "reportUnnecessaryTypeIgnoreComment": True,
}


def main() -> int:
    """Write the blocks of README.md into a program, and check all programs."""
    BUILD.mkdir(parents=True, exist_ok=True)
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    (BUILD / "readme.py").write_text("\n".join(blocks), "utf-8")
    (BUILD / "pyrightconfig.json").write_text(json.dumps(SETTINGS), "utf-8")
    pyright = [Path(sys.executable).with_name("pyright"), "-p", BUILD]
    return subprocess.run([*pyright, "--pythonpath", sys.executable], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
