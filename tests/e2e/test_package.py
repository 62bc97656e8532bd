"""The package as people get it: built twice, installed where nothing else is, and used."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import HeaderParser
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("replan-*.whl", "replan-*.tar.gz")
CACHE = Path(
    os.environ.get("UV_CACHE_DIR")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uv"
)
"""Where uv keeps what it has loaded; tests have a home of their own."""

OPTIONAL = ("aiohttp", "duckdb", "fastapi", "jinja2", "mcp", "opentelemetry", "psycopg", "pytest")


def built(folder):
    """The wheel and the source archive."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True, timeout=120)
    return [next(folder.glob(pattern)) for pattern in FILES]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built(tmp_path_factory.mktemp("dist"))


UV = (str(Path(sys.executable).with_name("uv")), "--quiet", "--cache-dir", str(CACHE))


def environment(folder):
    """The folder with the programs of an environment that has nothing."""
    subprocess.run([*UV, "venv", "--python", sys.executable, str(folder / "env")], check=True)
    return folder / "env" / "bin"


@cache
def own_versions():
    """The packages of the tests' own environment, with their versions."""
    freeze = (UV[0], "pip", "freeze", "--exclude-editable", "--python", sys.executable)
    return subprocess.run(freeze, capture_output=True, text=True, check=True).stdout


def install(wheel, programs, extras=""):
    # What the tests' own environment is made of is in the cache.
    versions = programs.parent / "versions.txt"
    versions.write_text(own_versions())
    command = [*UV, "pip", "install", "--python", str(programs / "python"), "--offline"]
    same = ["--constraint", str(versions)]
    subprocess.run([*command, *same, f"{wheel}{extras}"], env=_with_index(), check=True)
    _take_over_compiled(Path(sysconfig.get_path("purelib")), programs.parent)


def _take_over_compiled(own, environment):
    """Spare Python what it compiled for the tests: uv takes the same files with their times."""
    (there,) = environment.glob("lib/python*/site-packages")
    for package in filter(Path.is_dir, there.iterdir()):
        for folder in own.joinpath(package.name).rglob("__pycache__"):
            into = there / folder.relative_to(own)
            if into.parent.is_dir() and not into.exists():
                shutil.copytree(folder, into)


def _with_index():
    """The environment, in which uv takes packages from where pip does, as in the Makefile."""
    config = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(config, capture_output=True, text=True, check=False).stdout.strip()
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL") or told
    return {**os.environ, "UV_DEFAULT_INDEX": index} if index else {**os.environ}


def said(*command, cwd, code=0):
    """What a command says, in an environment without keys and without the tests' own path."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**kept, "HOME": str(cwd), "NO_COLOR": "1"}
    ended = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def test_the_same_sources_make_the_same_bytes(package, tmp_path):
    for first, second in zip(package, built(tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_the_package_says_what_it_is_and_has_what_it_needs(package):
    wheel, archive = package
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        (about,) = [name for name in names if name.endswith("dist-info/METADATA")]
        metadata = HeaderParser().parsestr(files.read(about).decode())
    assert (metadata["Name"], metadata["License-Expression"]) == ("replan", "Apache-2.0")
    assert metadata["Requires-Python"] == "<3.15,>=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert {"replan/py.typed", "replan/__init__.pyi"} < set(names)
    assert "replan/cli/page/static/page.css" in names
    assert {name.partition("/")[0] for name in names} == {
        "replan",
        "replan_local",
        f"replan-{metadata['Version']}.dist-info",
    }
    with tarfile.open(archive) as files:
        kept = {name.split("/")[1] for name in files.getnames()}
    assert kept == {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src"}


def test_a_newcomer_gets_along_with_the_package_alone_and_with_extras(package, tmp_path):
    programs = environment(tmp_path)
    install(package[0], programs)
    code = f"import importlib.util as i; print([n for n in {OPTIONAL} if i.find_spec(n)])"
    assert said(programs / "python", "-c", code, cwd=tmp_path).strip() == "[]"
    said(programs / "replan", "init", cwd=tmp_path)
    said(programs / "replan", "check", "--team", "team.yaml", cwd=tmp_path)
    missing = said(programs / "replan", "doctor", cwd=tmp_path)
    assert "replan[" in missing
    install(package[0], programs, "[local,testing]")
    tested = said(programs / "python", "-m", "pytest", "-q", cwd=tmp_path)
    assert "passed" in tested
    answer = said(programs / "replan", "run", "calculate 2 + 3", cwd=tmp_path)
    assert "2 + 3 = 5" in answer
