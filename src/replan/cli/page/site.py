"""What all pages share: the served teams, the templates, and the answer to a request."""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from replan.base.texts.signs import harmless
from replan.base.values import Value, text_or_json
from replan.cli.page.entering import PAGES, Entrance, form_token
from replan.cli.page.htmx import integrity
from replan.cli.page.markdown import safe
from replan.cli.page.read_runs import Readings
from replan.cli.page.shown import DECISIONS, ask_fingerprint, verdict_effects
from replan.cli.page.step_page import job_form
from replan.cli.page.terminal_runs import Terminals
from replan.server.callers.identity import Identity, Role, check_role
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.state.person.answers import details_shown, question_shown
from replan.state.questions import fingerprint_of
from replan.views.cells import amount, day_and_time, minute, seconds, sentence
from replan.views.event_lines import context_text, lacking_lines, steering_text
from replan.views.run.attempts import result_word
from replan.views.run.error_lines import error_of, is_in_text, repair_of, short_error
from replan.views.run.evidence import changeable_arguments, subject_text
from replan.views.run.history import lines_of, time_text, why_text
from replan.views.run.next_steps import corrections, raised_limit
from replan.views.run.overview import money, tokens, usage_text
from replan.views.run.timeline import tick_text
from replan.views.session_messages import message_text
from replan.views.step_texts import waits_in_words


@dataclass
class Talk:
    """A turn of a chat that is being taken."""

    text: str  # what was said, which the session has only once the turn is over
    turn_id: str
    task: asyncio.Task[None] | None = None
    problem: str = ""  # why it failed

    @property
    def is_at_work(self) -> bool:
        """Whether the turn is still being taken."""
        return self.task is not None and not self.task.done()


@dataclass(frozen=True, kw_only=True)
class Site:
    """The pages for the teams of a server.

    Attributes:
        served: The teams and their runs.
        entrance: Who gets in, and under which path.
        boot: Names this start of the server; a page of another start loads itself again.
        templates: The templates.
        readings: The runs that were read last.
        terminals: What continues runs that no served team does.
        talks: The turns of chats that are being taken, by whose they are and the session.
        rows: What the list shows about runs at rest, the newest last.
    """

    served: ServedTeams
    entrance: Entrance
    boot: str
    templates: Environment
    readings: Readings
    terminals: Terminals
    talks: dict[tuple[str, str, str], Talk] = field(
        default_factory=dict[tuple[str, str, str], Talk]
    )
    rows: OrderedDict[tuple[str, datetime], Any] = field(
        default_factory=OrderedDict[tuple[str, datetime], Any]
    )

    @property
    def prefix(self) -> str:
        """What is before every path of a link."""
        return self.entrance.home

    def page(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """Fill a template in.

        Args:
            request: What is answered.
            name: The template's file, without its ending.
            status: The status of the answer.
            values: What the template reads, in addition to `P` (what is before a path),
                `who`, `boot` and `form_token`, which a form carries as `form`.
        """
        who: Identity | None = getattr(request.state, "who", None)
        credential = self.entrance.credential_in(request)
        text = self.templates.get_template(f"{name}.html").render(
            P=self.prefix, who=who, boot=self.boot, form_token=form_token(credential), **values
        )
        # What others wrote may hold half a character, which no page can.
        return HTMLResponse(text.encode("utf-8", "replace"), status)


Handler = Callable[[Site, Request], Awaitable[Response]]


@dataclass(frozen=True)
class Page:
    """One address of the pages."""

    methods: str  # such as `GET POST`
    path: str
    handler: Handler
    role: Role | None = "read"  # who may open it; None: anybody

    def add_to(self, router: APIRouter, site: Site) -> None:
        """Let the page answer, once its caller is checked."""

        async def answer(request: Request) -> Response:
            check_role(request.state.who, self.role)
            return await self.handler(site, request)

        router.add_route(f"{PAGES}{self.path}", answer, methods=self.methods.split())


def page_path(request: Request) -> str:
    """The path of a page, as `Page` has it."""
    return request.url.path.removeprefix(PAGES)


def refusal_page(site: Site, request: Request, refusal: RefusedError) -> Response:
    """A page that says why a request was refused, or where a token can be typed."""
    problem = refusal.problem
    if problem.status == HTTPStatus.UNAUTHORIZED:
        return site.page(request, "enter", problem.status, is_used=False, is_wrong=False)
    return site.page(request, "refused", problem.status, problem=problem)


def templates() -> Environment:
    """The templates; all values are text unless `safe` made them."""
    made = Environment(
        loader=PackageLoader("replan.cli.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "markdown": safe,
        "seconds": seconds,
        "money": money,
        "amount": amount,
        "signed": with_sign,
        "tokens": tokens,
        "used": usage_text,
        "day": day_and_time,
        "steering": steering_text,
        "why": partial(why_text, has_failures=False),
        "sentence": sentence,
        "repair": repair_of,
        "error": error_of,
        "short": short_error,
        "step_in": _step_in,
        "context": context_text,
        "lacking": lacking_lines,
        "word": result_word,
        "time": _time,
        "minute": minute,
        "waits": waits_in_words,
        "tick": tick_text,
        "json": _json,
        "text": _text,
        "said": message_text,
        "seen": ask_fingerprint,
        "asked": question_shown,
        "subject": subject_text,
        "corrections": corrections,
        "limit": raised_limit,
        "details": details_shown,
        "leads": verdict_effects,
        "decision": DECISIONS.__getitem__,
        "arguments": changeable_arguments,
        "argument": text_or_json,
        "lines": lines_of,
        "mark": _mark,
        "place": fingerprint_of,
        "job": partial(job_form, is_open=True),
    }
    page_globals: dict[str, Any] = {"integrity": integrity()}
    made.filters.update(filters)
    tests: dict[str, Any] = {"told_in": is_in_text}
    made.tests.update(tests)
    made.globals.update(page_globals)
    return made


_SIGNS = {"at most ": "≤ ", "at least ": "≥ ", "about ": "≈ "}


def with_sign(text: str) -> str:
    """A figure with a sign for the words before it."""
    for words, sign in _SIGNS.items():
        text = text.replace(words, sign)
    return "–" if text == "-" else text


def _step_in(line: str, steps: Collection[int]) -> int:
    """The step that a line begins with, if it is one of these; else 0."""
    found = re.match(r"step (\d{1,9})\b", line)
    return int(found[1]) if found and int(found[1]) in steps else 0


def _time(at: datetime | None, began: datetime) -> str:
    return time_text(at, began) if at else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _mark(value: Value) -> str:
    """A name for exactly this value, as an element has it."""
    return fingerprint_of(value.model_dump(mode="json"))


def _text(value: object) -> str:
    """A text from others without characters that a browser would reorder or hide."""
    return harmless(str(value))
