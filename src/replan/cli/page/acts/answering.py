"""Answer a run: a question, a call of a tool, work in doubt, or its plan."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from replan.base.errors import InputError
from replan.base.values import text_or_json
from replan.cli.page.acts.acting import call_for, confirm, form_of_act, refuse_stale, to_run
from replan.cli.page.shown import DECISIONS, ask_fingerprint
from replan.cli.page.site import Site, page_path
from replan.server.bodies import AnswerBody
from replan.server.doors import runs
from replan.server.problems import RefusedError
from replan.state.person.answers import CHANGED, arguments_of, leads_to
from replan.state.questions import PLAN, Question
from replan.views.run.evidence import Evidence, changeable_arguments, evidence_of
from replan.views.run.history import difference

GONE = "This is not asked any more, or was answered meanwhile."
OTHER = "The question has changed since the page was loaded."
LETS_HAPPEN = ("approve", "edit", "run again")


class Asked(NamedTuple):
    """What is asked, what it is decided on, and the page to return to."""

    ask: Question
    evidence: Evidence
    back: str
    lacks: str = ""  # why nothing here goes on with it


async def answer(site: Site, request: Request) -> Response:
    """Take an answer; one that lets something happen is shown before."""
    fields, acted = await form_of_act(site, request)
    record, reading = acted.record, acted.reading
    asks = reading.run.pending_questions
    ask = next((each for each in asks if each.key == fields.get("key")), None)
    if ask is None or fields.get("seen") != ask_fingerprint(ask):
        return refuse_stale(site, request, reading, OTHER if ask else GONE)
    try:
        value = read_answer(ask, fields)
    except InputError as error:
        values: dict[str, Any] = {"ask": ask, "run": reading.run, "typed": fields}
        values["evidence"] = {ask.key: evidence_of(ask, reading.run)}
        return site.page(request, "answer", 422, problem=str(error), **values)
    if fields.get("action") in LETS_HAPPEN and not fields.get("sure"):
        back = f"/runs/{record.run_id}"
        asked = Asked(ask, evidence_of(ask, reading.run), back, reading.lacks)
        return confirm_answer(site, request, asked, fields, value)
    body = AnswerBody(answers={ask.key: value})
    try:
        await runs.answer(call_for(acted.served, request), record.run_id, body)
    except RefusedError as error:
        if error.problem.code != "nothing_asked":
            raise
        return refuse_stale(site, request, await site.readings.of(record), GONE)
    except InputError as error:
        if str(error) != CHANGED:
            raise
        return refuse_stale(site, request, await site.readings.of(record), OTHER)
    return to_run(site, record.run_id)


def read_answer(ask: Question, fields: Mapping[str, str]) -> JsonValue:
    """Read a form as the answer to the question that it shows, and bind it to that.

    Raises:
        InputError: It says nothing, or what is not an answer to this.
    """
    text, action = fields.get("text", "").strip(), fields.get("action", "")
    if ask.kind == "question":
        if not text:
            raise InputError("The answer is empty. Write one.")
        return ask.bound(text)
    decision: dict[str, JsonValue] = {"action": action}
    if ask.kind == "unknown_outcome":
        _one_of(action, "run again", "done", "fail")
        decision |= {"text": text} if text else {}
    else:
        _one_of(action, "approve", "reject", "edit")
        decision |= {"reason": text} if action == "reject" and text else {}
    if action == "edit":
        is_plan = ask.kind == PLAN
        changed = fields.get("plan", "") if is_plan else read_arguments(ask, fields)
        decision |= {"plan" if is_plan else "arguments": changed}
    return {**decision, "fingerprint": ask.fingerprint} if ask.fingerprint else decision


def read_arguments(ask: Question, fields: Mapping[str, str]) -> dict[str, JsonValue]:
    """The arguments that a form has: each is of the type that was shown, and further ones are JSON.

    Raises:
        InputError: One is of another type, or no JSON.
    """
    further = fields.get("arguments", "").strip()
    given = {
        name: _argument(name, value, fields.get(f"argument {name}"))
        for name, value in changeable_arguments(ask).items()
    }
    return {**given, **(arguments_of(further) if further else {})}


def _argument(name: str, shown: JsonValue, typed: str | None) -> JsonValue:
    if typed is None or typed == text_or_json(shown):
        return shown
    if isinstance(shown, str):
        return typed
    try:
        found: JsonValue = json.loads(typed)
    except ValueError:
        found = typed
    kinds: tuple[type, ...] = (int, float) if type(shown) in (int, float) else (type(shown),)
    if shown is not None and type(found) not in kinds:
        example = text_or_json(shown)[:80]
        raise InputError(f"{name}: {typed[:80]!r} is of another type. Write it as {example} is.")
    return found


def _one_of(action: str, *known: str) -> None:
    if action not in known:
        raise InputError(f"'{action[:40]}' is not a decision on this. Choose: {', '.join(known)}.")


def confirm_answer(
    site: Site, request: Request, asked: Asked, fields: dict[str, str], value: JsonValue
) -> Response:
    """Show what would happen, and what it is decided on."""
    ask = asked.ask
    is_plan = ask.kind == PLAN
    what = "The plan runs" if is_plan else f"The tool {ask.fields.get('tool', '')} is called"
    does = {
        "approve": f"{what} as it is shown here.",
        "edit": f"{what} with what you changed.",
        "run again": f"{leads_to(ask.details)['run again'].capitalize()}.",
    }[fields["action"]]
    shown: object = ask.text if is_plan else ""
    lines: list[str] = []
    if fields["action"] == "edit" and isinstance(value, dict):
        shown = value.get("plan", "")
        sent = (changeable_arguments(ask), value["arguments"]) if "arguments" in value else ()
        texts = [json.dumps(each, ensure_ascii=False, indent=2).splitlines() for each in sent]
        lines = [*difference(*texts)] if texts else []
    return confirm(
        site,
        request,
        title=f"{DECISIONS[fields['action']]}?",
        does=[does, asked.lacks or "The run continues, and what it calls may cost."],
        shown=shown,
        lines=lines,
        action=page_path(request),
        fields={**fields, "sure": "1"},
        button=DECISIONS[fields["action"]],
        back=asked.back,
        ask=None if is_plan else ask,
        evidence={ask.key: asked.evidence},
        run_path=asked.back if asked.back.startswith("/runs/") else "",
    )
