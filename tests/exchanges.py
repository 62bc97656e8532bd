"""What programs and browsers send to our server, and what they are answered, as pages have it.

A page is as `transcripts.py` says, and each section has a server of its own, whose team is that of
`acts_teams.py`. A `server` block has, in YAML, its `teams` (names; else `house`), options of the
`team`, `replies` of its host's model, `tokens` (else the owner's), `options` of the server, and
with `pages: true` the page; `pays: true` is a team whose tool needs approval, and with `fails: WHY`
its painter fails. Other blocks are texts, which bodies name. Requests, and more:

    $ anna POST /runs Origin=null {task: Dig.} | outcome Retry-After
    > labels: {n: "1"}                  by anna, with a header; the body is YAML, and goes on below;
                                        ANSWER.NAME.NAME is what the last answer has there
    $ POST /runs '{"task"'              a body that is a text is sent as it is
    $ REST /runs/ID-1 | outcome         waits until a run rests, or until a page has the text behind
    $ FILL /ui/runs/ID-1 1              a form of a page, here its second one; `SEND` sends it with
    $ SEND {plan: {Saw: Cut}}           other fields, or other words in one; `CONFIRM`: it is meant
    $ meanwhile POST ...                is sent; `then` tells what it was answered
    $ hold                              who works, until `let go`; `at work` waits for them
    $ did                               what was done; `prompt`: what the model was told last
    $ also | steps                      other parts of the last answer

Below a request stand its status and the parts that it names: paths in the JSON, or in each event of
a stream, and headers; `each NAME` of a list, `grep TEXT` and `only TEXT` of lines, `from TEXT`,
`last`, `count`, `join PATH`, and `plain`: without the tags of HTML. Of a problem all is told.
Events of AG-UI have to be those of the protocol, in its order. REPLAN_TEST_WRITE_SNAPSHOTS=1 writes
all that anew.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import yaml

from acts_teams import END, Fence
from doors import check_events
from page_forms import parsed
from pages import OWNER, shown
from replan import open_storage
from replan.testing import ScriptedModel
from served import as_, check_described, rested, served, tokens_of
from transcripts import BLOCK, COMMAND, Varying, at, reply_of, sections_of

PAGES = Path(__file__).parent / "e2e" / "exchanges"
_REQUEST = re.compile(
    r"(?:(?P<later>meanwhile) )?(?:(?P<who>[a-z]+) )?(?P<method>[A-Z]+)(?: (?P<path>/\S*))?"
    r'(?P<headers>(?: [\w-]+=(?:"[^"]*"|\S+))*)(?: ?(?P<body>.*))',
    re.DOTALL,
)
_HEADER = re.compile(r'([\w-]+)=(?:"([^"]*)"|(\S+))')
_IDS = {
    "ID": r"(?<![\w-])[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}(?!\w)",
    "PRINT": r"(?<![\w-])[0-9a-f]{16}(?:[0-9a-f]{48})?(?!\w)",
}


class Exchanges:
    """A server of a section, and who sends it something."""

    def __init__(self, blocks: list[tuple[str, str]], opened: AsyncExitStack) -> None:
        self.texts, self.opened, self.given = dict(blocks), opened, dict[str, Any]()
        for kind, text in blocks:
            self.given |= yaml.safe_load(text) if kind == "server" else {}
        self.ids, self.later = Varying(_IDS), list[asyncio.Task[list[str]]]()
        self.form: tuple[str, dict[str, str], str] = ("", {}, "")

    async def open(self) -> None:
        """Open the server and its client."""
        given, fence = self.given, Fence(self.given.get("fails", ""))
        replies = {key: reply_of(told) for key, told in given.get("replies", {}).items()}
        self.fence, self.model = fence, ScriptedModel({**END, **replies})
        team = (
            fence.paying() if given.get("pays") else fence.team(self.model, **given.get("team", {}))
        )
        teams = dict.fromkeys(given.get("teams", ["house"]), team)
        tokens = tokens_of(**given["tokens"]) if "tokens" in given else OWNER
        options = given.get("options", {})
        enter = self.opened.enter_async_context
        if given.get("pages"):
            storage = await enter(open_storage(":memory:"))
            pages = await enter(shown(teams, storage, tokens, **options))
            root = str(pages.base_url).partition("/ui/")[0]
            headers, hooks = {"Authorization": f"Bearer {OWNER}"}, {"response": [check_described]}
            client = httpx.AsyncClient(
                base_url=root, headers=headers, trust_env=False, timeout=60, event_hooks=hooks
            )
            self.client = await enter(client)
        else:
            self.client = await enter(served(teams, ":memory:", tokens, **options))

    async def carry_out(self, typed: str) -> str:
        """What a command comes to, below it."""
        command, *lines = [line[2:] for line in typed.splitlines()]
        command, *parts = command.split(" | ")
        told = await self._told("\n".join([command, *lines]), parts)
        plain = self.ids.plain("\n".join(told))
        return typed + "".join(f"{line.rstrip()}\n" for line in plain.splitlines())

    async def _told(self, command: str, parts: list[str]) -> list[str]:
        match command:
            case "hold":
                self.fence.leave.clear()
            case "at work":
                await asyncio.wait_for(self.fence.at_work.wait(), 20)
            case "let go":
                self.fence.leave.set()
            case "then":
                return await self.later.pop(0)
            case "did":
                return [*self.fence.did, *self.fence.painted, *map(str, self.fence.paid)]
            case "also":
                return _answer(self.last, parts)
            case "prompt":
                told = "\n".join(each.text for each in self.model.calls[-1].messages)
                return _parts(told.splitlines(), parts, {})
            case _:
                return await self._requested(command, parts)
        return []

    async def _requested(self, command: str, parts: list[str]) -> list[str]:
        command = self.ids.meant(command).replace("PORT", str(self.client.base_url.port))
        command = re.sub(r"ANSWER\.([\w.]*\w)", lambda path: self._answered(path[1]), command)
        found = _REQUEST.fullmatch(command)
        assert found, command
        headers = {
            name: quoted or plain for name, quoted, plain in _HEADER.findall(found["headers"])
        }
        headers |= as_(found["who"]) if found["who"] else {}
        body = found["body"]
        for name, text in self.texts.items():
            body = body.replace(name, json.dumps(text)) if "." in name else body
        sent = self._sent(found["method"], found["path"], headers, yaml.safe_load(body))
        if not found["later"]:
            self.last = await sent
            return _answer(self.last, parts)
        self.later.append(asyncio.ensure_future(_awaited(sent, parts)))
        return []

    def _answered(self, path: str) -> str:
        return json.dumps(at(self.last.json(), path))

    async def _sent(self, method: str, path: str, headers: dict[str, str], body: Any) -> Any:
        match method:
            case "REST" if body:
                return await self._seen(path, headers, body)
            case "REST":
                await rested(self.client, path.removeprefix("/runs/"), headers=headers)
            case "FILL":
                page = await self.client.get(path, headers=headers)
                self.form = _form(page, body or 0)
                return page
            case "SEND" | "CONFIRM":
                form = self.form if method == "SEND" else _form(self.last, 0)
                return await self._filled_in(form, headers, body or {})
            case _:
                content = {"content": body} if isinstance(body, str) else {"json": body}
                given = {} if body is None else content
                return await self.client.request(method, path, headers=headers, **given)
        return await self.client.get(path, headers=headers)

    async def _seen(self, path: str, headers: dict[str, str], text: str) -> httpx.Response:
        async with asyncio.timeout(10):
            while True:
                page = await self.client.get(path, headers=headers)
                if text in page.text and "At work" not in page.text:
                    return page

    async def _filled_in(
        self, form: tuple[str, dict[str, str], str], headers: dict[str, str], given: dict[str, Any]
    ) -> httpx.Response:
        """Send a form with other fields; a mapping has other words for what is in one."""
        action, fields, whole = form
        for name, value in given.items():
            changes = value.items() if isinstance(value, dict) else [(fields.get(name), value)]
            for old, new in changes:
                fields = fields | {name: fields[name].replace(old, new) if old else new}
        files = [("files", ("", b""))] if "multipart" in whole else None
        return await self.client.post(action, data=fields, files=files, headers=headers)


def _form(page: httpx.Response, number: int) -> tuple[str, dict[str, str], str]:
    """The address of a form, its fields, and the form itself."""
    whole = re.findall(r'<form class="act".*?</form>', page.text, re.DOTALL)[number]
    return (*parsed(page.text, number), whole)


async def _awaited(sent: Any, parts: list[str]) -> list[str]:
    return _answer(await sent, parts)


def _answer(answer: httpx.Response, parts: list[str]) -> list[str]:
    """The status of an answer, and what of it is named."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    lines = answer.text.splitlines()
    if kind == "text/event-stream":
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        if answer.request.url.path.startswith("/ag-ui/"):
            check_events(data)
        found: list[Any] = [json.loads(each) for each in data if each != "[DONE]"]
    elif kind.endswith("json"):
        found = [answer.json()]
    else:
        found = [line.strip() for line in lines if line.strip()] or [{}]
    if kind == "application/problem+json":
        problem, *fixes = _problem(found[0])
        return [
            f"{answer.status_code} {problem}",
            *fixes,
            *(_parts(found, parts, answer.headers) if parts else []),
        ]
    told = _parts(found, parts, answer.headers) if parts else []
    is_short = len(told) == len(found) == 1
    return [f"{answer.status_code} {told[0]}"] if is_short else [str(answer.status_code), *told]


def _problem(told: dict[str, Any]) -> list[str]:
    """All that a problem tells."""
    lines = [f"{told['code']}: {told['detail']}"]
    for each in told["mistakes"]:
        place = f"{each['field']}, line {each['line']}" if each.get("line") else each["field"]
        lines.append(f"  {place}: {each['fix']}")
    return lines


def _parts(found: list[Any], parts: list[str], headers: Mapping[str, str]) -> list[str]:
    """The parts of an answer, each a line; what an event lacks is left out."""
    for part in parts:
        word, _, text = part.partition(" ")
        found = (
            _PARTS[word](found, text) if word in _PARTS else _named(found, part.split(), headers)
        )
    return [_line(each) for each in found]


_PARTS: dict[str, Callable[[list[Any], str], list[Any]]] = {
    "grep": lambda found, text: [each for each in found if text in _line(each)],
    "from": lambda found, text: found[[text in _line(each) for each in found].index(True) :],
    "only": lambda found, text: [text for each in found if text in _line(each)],
    "last": lambda found, _: found[-1:],
    "each": lambda found, name: [entry for each in found for entry in each[name]],
    "join": lambda found, path: ["".join(_at(each, path) for each in found)],
    "count": lambda found, _: [len(found)],
    "plain": lambda found, _: [unescape(re.sub("(<[^>]*>| )+", " ", each)) for each in found],
}


def _named(found: list[Any], paths: list[str], headers: Mapping[str, str]) -> list[str]:
    rows = [[_line(_at(each, path, headers)) for path in paths] for each in found]
    return [", ".join(filter(None, row)) for row in rows if any(row)]


def _at(value: Any, path: str, headers: Mapping[str, str] = httpx.Headers()) -> Any:
    """What a document has at a path, or else its answer in a header."""
    try:
        return at(value, path)
    except (KeyError, TypeError):
        return headers.get(path, "")


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def names_on(page: Path) -> list[str]:
    """The sections of a page, each of which has a server."""
    return [name for name in sections_of(page) if name]


async def check_section(page: Path, name: str) -> None:
    """See that a section comes to what it has below each command."""
    sections = sections_of(page)
    found = [(kind, text) for each in ("", name) for _, kind, text in BLOCK.findall(sections[each])]
    console, now = dict(found)["console"], ""
    async with AsyncExitStack() as opened:
        exchanges = Exchanges(found, opened)
        await exchanges.open()
        for typed in COMMAND.findall(console):
            now += await exchanges.carry_out(typed)
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        told = sections[name].replace(console, now)
        whole = "".join(sections.values()).replace(sections[name], told)
        await asyncio.to_thread(page.write_text, whole, "utf-8")
    else:
        assert now == console
