"""`replan doctor`: what is installed, what is configured, and what can be reached."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, Literal

import typer

from replan.cli.shared import options
from replan.cli.shared.process import GOOD, INCOMPLETE, as_command, location_from
from replan.cli.user_files.storage_location import StorageLocation

_KEY = "OPENAI_API_KEY"
_SECONDS = 5.0  # until a server counts as one that cannot be reached
_GROUPS = ("all", "dev", "docs", "testing")  # extras of extras, and of who works on Replan
_NAME = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[^\]]*)\])?")
_EXTRA = re.compile(r"extra == [\"']([\w-]+)")

State = Literal["ok", "note", "problem"]
_MARKS: dict[State, str] = {"ok": "ok      ", "note": "-       ", "problem": "PROBLEM "}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, and how it is."""

    state: State
    what: str
    told: str

    def __str__(self) -> str:
        return f"{_MARKS[self.state]}{self.what}: {self.told}"


@as_command
async def doctor(
    *,
    storage: options.Storage = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            envvar="REPLAN_BASE_URL", help="A server that speaks the OpenAI protocol, to be asked."
        ),
    ] = None,
) -> int:
    """Say what is installed, configured and reachable here, and what to type where it is not."""
    findings = [
        Finding("ok", "replan", f"{version('replan')} on Python {platform.python_version()}"),
        *_extras(),
        await _storage(location_from(storage)),
        _key(base_url),
        await _server(base_url),
    ]
    for finding in findings:
        typer.echo(str(finding))
    return INCOMPLETE if any(finding.state == "problem" for finding in findings) else GOOD


def _extras() -> Iterator[Finding]:
    """Which optional parts are there: those that are not, and what installs them."""
    extras = sorted(
        {name for requirement in requires("replan") or () for name in _EXTRA.findall(requirement)}
    )
    missing = {extra: [*_missing("replan", extra)] for extra in extras if extra not in _GROUPS}
    there = [extra for extra, gone in missing.items() if not gone]
    yield Finding("ok", "installed parts", ", ".join(there) or "none")
    for extra, gone in missing.items():
        if gone:
            told = f'without {", ".join(gone)}; pip install "replan[{extra}]"'
            yield Finding("note", f"part {extra}", told)


def _missing(package: str, extra: str) -> Iterator[str]:
    """The packages of an extra that are not installed; an extra may want those of others."""
    for requirement in requires(package) or ():
        named = _NAME.match(requirement)
        if named is None or extra not in _EXTRA.findall(requirement):
            continue
        try:
            version(named["name"])
        except PackageNotFoundError:
            yield named["name"]
            continue
        for inner in filter(None, (named["extras"] or "").split(",")):
            yield from _missing(named["name"], inner.strip())


async def _storage(location: StorageLocation) -> Finding:
    from replan.base.errors import ReplanError
    from replan.cli.user_files.storage_location import open_existing_location

    if location.file is not None and not location.file.exists():
        return Finding(
            "note", "storage", f"{location.where} is not there yet; the first run makes it"
        )
    shown = location.where.rpartition("@")[2]
    try:
        async with open_existing_location(location) as opened:
            newest = await opened.runs.recent(1)
    except ReplanError as error:
        return Finding("problem", "storage", str(error))
    began = f", the newest run began {newest[0].started_at:%Y-%m-%d %H:%M}" if newest else ""
    return Finding("ok", "storage", f"{shown} can be read{began or ', without any run'}")


def _key(base_url: str | None) -> Finding:
    if os.environ.get(_KEY):
        return Finding("ok", _KEY, "is set")
    needed = "a server of your own may need none" if base_url else "`openai:NAME` needs it"
    return Finding("note", _KEY, f"is not set; {needed}. The model `offline` needs no key")


async def _server(base_url: str | None) -> Finding:
    """Ask a server for its models."""
    what = "model server"
    if not base_url:
        return Finding("note", what, "none is named; --base-url URL asks one")
    import httpx2

    key = os.environ.get(_KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx2.AsyncClient(timeout=_SECONDS) as client:
            answer = await client.get(f"{base_url.rstrip('/')}/models", headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = str(error) or type(error).__name__
        fix = "Is it running, and does the address end like http://127.0.0.1:8000/v1?"
        return Finding("problem", what, f"{base_url} cannot be reached: {why}. {fix}")
    if answer.is_success:
        return Finding("ok", what, f"{base_url} answers")
    fix = f"Check {_KEY}." if answer.status_code in (401, 403) else "Does its address end in /v1?"
    return Finding("problem", what, f"{base_url}/models answers {answer.status_code}. {fix}")
