"""Run the tests with the lowest, the newest and the pre-release versions, on every Python here.

`make versions` starts it. Its arguments go to pytest; without any, all tests run. What a run was
made of and what it printed stands in build/versions/.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "versions"
FLOORS = BUILD / "floors.txt"
UV = Path(sys.executable).with_name("uv")
# Nobody can be asked to build a package; the one exception has never had a wheel.
WHEELS = ("--only-binary", ":all:", "--no-binary", "forbiddenfruit")
# On all processors, as `make test` does.
PYTEST = ("-m", "pytest", "-q", "--processes", "auto")
# A warning about versions that are old, or not out yet, is no error of ours.
LENIENT = ("-o", "filterwarnings=default")
COUNTS = re.compile(r"^(?:=+ )?(\d+ [a-z].*) in \d+\.\d+s", re.MULTILINE)


class Tested(NamedTuple):
    """A line of the closing table."""

    versions: str
    python: str
    result: str
    told: str


def declared() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def builders() -> list[str]:
    """Name what builds the package, which `make` brings along."""
    return ["uv", *declared()["build-system"]["requires"]]


def floors() -> list[str]:
    """Give each lower bound of pyproject.toml as the only version that is allowed."""
    whole = declared()
    project = whole["project"]
    extras = project["optional-dependencies"].values()
    groups = [whole["build-system"]["requires"], project["dependencies"], *extras]
    bounds = {bound for group in groups for bound in group if ">=" in bound}
    return sorted({re.sub(r"\[.*\]", "", bound).replace(">=", "==") for bound in bounds})


def family() -> list[str]:
    """Name the packages of LangGraph and LangChain that the tests use."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    return re.findall(r"^(lang(?:graph|chain|smith)[a-z-]*)==", lock, re.MULTILINE)


CHOICES = {
    "lowest": ["--constraints", str(FLOORS), "--build-constraints", str(FLOORS)],
    "newest": [],
    "pre-release": [f"--prerelease-package={name}=allow" for name in family()],
}


def interpreter(python: str) -> Path | None:
    """Find a Python that starts: along the path, then where pyenv keeps its own."""
    name = f"python{python}"
    along = [Path(each) for at in os.get_exec_path() if (each := shutil.which(name, path=at))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(pyenv.glob(f"versions/{python}.*/bin/python"))
    return next((each for each in (*along, *kept) if starts(each, python)), None)


def starts(candidate: Path, python: str) -> bool:
    """Whether it is the Python that its name says: a shim may be none at all."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return output(candidate, "-c", code).stdout.strip() == python


def output(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def install(versions: str, base: Path, home: Path) -> str:
    """Make an environment with Replan and everything that its tests need; tell what is wrong."""
    packages = (*WHEELS, *CHOICES[versions], *builders(), "--editable", f"{ROOT}[dev]")
    for command in (
        ("venv", "--quiet", "--clear", "--python", base, home),
        ("pip", "install", "--quiet", "--python", home, *packages),
    ):
        ended = output(UV, *command)
        if ended.returncode:
            return ended.stderr
    return ""


def installed(home: Path) -> str:
    """List what an environment is made of."""
    return output(UV, "pip", "freeze", "--exclude-editable", "--python", home).stdout


def test(versions: str, python: str, base: Path, arguments: list[str]) -> Tested:
    """Run the tests in an environment of these versions."""
    home = BUILD / f"{versions}-{python}"
    if problem := install(versions, base, home):
        print(problem)
        return Tested(versions, python, "FAILED", "cannot be installed")
    made_of = installed(home)
    if versions == "pre-release" and made_of == installed(BUILD / f"newest-{python}"):
        return Tested(versions, python, "passed", "there is none: the same as the newest")
    lenient = () if versions == "newest" else LENIENT
    log = BUILD / f"{versions}-{python}.txt"
    with log.open("w", encoding="utf-8") as file:
        file.write(made_of)
        file.flush()
        command = (home / "bin" / "python", *PYTEST, *lenient, *arguments)
        ended = subprocess.run(command, stdout=file, stderr=file, check=False, cwd=ROOT)
    told = log.read_text(encoding="utf-8", errors="replace")
    if ended.returncode:
        print(told[-5_000:])
    counts = COUNTS.findall(told)
    result = "FAILED" if ended.returncode else "passed"
    return Tested(versions, python, result, counts[-1] if counts else "no test ran")


def results(arguments: list[str]) -> Iterator[Tested]:
    """Test on every Python that is here, and say which one is not."""
    for python in PYTHONS:
        if (base := interpreter(python)) is None:
            yield Tested("all", python, "missing", f"no python{python} that starts")
            continue
        for versions in CHOICES:
            print(f"The {versions} versions on Python {python}", flush=True)
            yield test(versions, python, base, arguments)


def main(arguments: list[str]) -> int:
    """Test everything, and close with a table."""
    BUILD.mkdir(parents=True, exist_ok=True)
    FLOORS.write_text("\n".join(floors()), encoding="utf-8")
    rows = [Tested("versions", "Python", "result", "tests"), *results(arguments)]
    print()
    for row in rows:
        print(f"{row.versions:<12} {row.python:<7} {row.result:<8} {row.told}")
    return int(any(row.result == "FAILED" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
