"""An MCP server: each team is a tool; its progress is reported, and its questions are asked by MCP.

A client that cannot ask its user gets the question as the result. What a person has to decide is
never answered by the model that called the tool.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, cast

import mcp_types
from anyio import CancelScope
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import is_version_at_least
from pydantic import JsonValue
from starlette.types import ASGIApp, Receive, Scope, Send

from replan.base.errors import InputError, ReplanError
from replan.log.report import RunReport
from replan.server.bodies import MOST_ANSWERS
from replan.server.callers.identity import Identity, check_role
from replan.server.exchange import (
    Begun,
    Ended,
    Exchange,
    RequestNames,
    WaitingRun,
    answers_at,
    place_of,
)
from replan.server.exchange_texts import progress_line, shown_text
from replan.server.problems import RefusedError, as_refusal
from replan.server.request_body import MOST_BYTES
from replan.server.served_teams import ServedTeams, team_services
from replan.state.person.answers import shown_in
from replan.state.questions import Question

_RETRIES_WITH_ANSWERS = "2026-07-28"
"""The version from which a client calls again with answers, instead of being asked in between."""

_SCHEMA = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "minLength": 1, "description": "What to do."},
        "plan": {"type": "string", "description": "A plan document to carry out, if there is one."},
    },
    "required": ["task"],
    "additionalProperties": False,
}
_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}
_DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["approve", "reject"], "title": "Decision"},
        "reason": {"type": "string", "title": "Why, if you reject it"},
    },
    "required": ["action"],
}


def manager_of(served: ServedTeams) -> StreamableHTTPSessionManager:
    """Create the manager that serves MCP over streamable HTTP; its `run` has to be entered."""
    tools = _tools_of(served.runtimes)

    async def listed(_: Any, __: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(
            tools=[_tool(served, *description) for description in tools.items()]
        )

    async def called(
        context: Any, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        try:
            door = _Door(served, context.request.state.who, context)
            return await door.call(tools.get(params.name, params.name), params)
        except ReplanError as error:
            return _result(as_refusal(error).explained, is_error=True)

    server: Server[Any] = Server("replan", on_list_tools=listed, on_call_tool=called)
    return StreamableHTTPSessionManager(app=server, max_request_body_size=MOST_BYTES)


def bind_sessions_to_tokens(door: ASGIApp) -> ASGIApp:
    """Return the door of a manager in which a session is known only to the token that began it."""

    async def owned_door(scope: Scope, receive: Receive, send: Send) -> None:
        who: Identity = scope["state"]["who"]
        # MCP's manager compares the client and the subject of what it takes for OAuth's token.
        token = AccessToken(token="", client_id=who.name, subject=who.tenant, scopes=[])
        await door({**scope, "user": AuthenticatedUser(token)}, receive, send)

    return owned_door


def _input(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a run begins with.

    Raises:
        RefusedError: It is none of the tool's arguments.
    """
    unknown = sorted(arguments.keys() - {"task", "plan"})
    task, plan = arguments.get("task"), arguments.get("plan")
    is_read = isinstance(task, str) and task.strip() and isinstance(plan, str | None)
    if unknown or not is_read:
        fix = "Give `task`, a text, and `plan`, a text, if there is one."
        raise RefusedError(422, "bad_request", f"These arguments cannot be used. {fix}")
    # The caller of a tool is a model.
    return {
        "messages": [("user", task)],
        **({} if plan is None else {"plan": plan, "plan_by": "model"}),
    }


def _tools_of(teams: Iterable[str]) -> dict[str, str]:
    """The teams by the names of their tools, which have fewer characters than names of teams."""
    tools = dict[str, str]()
    for team in teams:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", team)[:60]
        numbered = (f"{name}_{number}" for number in count(2))
        tools[next(each for each in chain([name], numbered) if each not in tools)] = team
    return tools


def _tool(served: ServedTeams, name: str, team: str) -> mcp_types.Tool:
    members = "; ".join(
        f"{card.name}: {card.intended_use}" for card in team_services(served.runtimes[team]).team
    )
    text = f"Lets a team do a task by a plan, and gives its answer. In the team are {members}"
    return mcp_types.Tool(name=name, description=text[:2_000], input_schema=_SCHEMA)


def _result(text: str, *, is_error: bool = False, **fields: JsonValue) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(type="text", text=text)],
        structured_content=cast("dict[str, Any]", fields) or None,
        is_error=is_error,
    )


@dataclass(frozen=True)
class _Door:
    """One call of a tool."""

    served: ServedTeams
    who: Identity
    context: Any  # what MCP's server knows of the request

    async def call(
        self, team: str, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        """Begin a run, or continue the one whose questions were answered; wait until it rests."""
        check_role(self.who, "run")
        self.served.team_at(team, "tool")
        exchange = Exchange(
            served=self.served,
            who=self.who,
            team=team,
            door="mcp",
            next_key=lambda report, _: ["run", report.run_id],
            tokens=False,
        )
        if params.request_state:
            begun = await self._continue(exchange, params)
        else:
            begun = await exchange.begin(_input(params.arguments or {}))
        try:
            return await self._until_told(exchange, begun)
        except asyncio.CancelledError:
            # Whoever gives a call up never hears of its run, and may call again.
            with CancelScope(shield=True):
                report = await begun.run.report()
                if report.outcome == "running":
                    await self.served.stop(report, self.who)
            raise

    async def _until_told(
        self, exchange: Exchange, begun: Begun
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        """Wait until a run rests, ask what it asks, and go on until there is a result."""
        while True:
            end = await self._wait_for_rest(exchange, begun)
            report = end.report
            if report.outcome != "waiting" or not self._can_ask():
                return self._result_of(end)
            if is_version_at_least(self.context.protocol_version, _RETRIES_WITH_ANSWERS):
                return _retry_with_answers(report)
            answers = await self._ask_user(report.pending_questions)
            if all(answer is None for answer in answers.values()):
                return self._result_of(end)
            begun = await self._answer(exchange, report, answers)

    async def _continue(self, exchange: Exchange, params: mcp_types.CallToolRequestParams) -> Begun:
        report = await self.served.report_of(params.request_state or "", self.who)
        responses = params.input_responses or {}
        if len(responses) > MOST_ANSWERS:
            raise InputError(
                f"{len(responses):,} answers are too many. Give {MOST_ANSWERS:,} at most."
            )
        said = {place: each.model_dump(mode="json") for place, each in responses.items()}
        names = RequestNames(ids=(["run", report.run_id, cast("JsonValue", said)],) if said else ())
        if (again := await exchange.repeated(names)) is not None:
            return again
        answers = {place: _answer_in(response) for place, response in responses.items()}
        return await self._answer(exchange, report, answers, names)

    async def _answer(
        self,
        exchange: Exchange,
        report: RunReport,
        answers: Mapping[str, JsonValue],
        names: RequestNames | None = None,
    ) -> Begun:
        """Continue with answers by their places; who declined to answer gives None."""
        asks = report.pending_questions
        bound = answers_at(answers, asks, "inputResponses")
        said = {ask.key: bound[ask.key] for ask in asks if answers.get(place_of(ask)) is not None}
        if not said:
            return Begun(self.served.run_of(report))
        begun = await exchange.answer(WaitingRun(report, shown_in(asks)), said, names)
        if begun.problem:
            raise InputError(begun.problem)
        return begun

    async def _wait_for_rest(self, exchange: Exchange, begun: Begun) -> Ended:
        """Wait until a run rests, and report its progress meanwhile."""
        async with aclosing(exchange.events(begun)) as events:
            async for event in events:
                if line := progress_line(event).strip():
                    await self.context.session.report_progress(event.seq or 0, None, line)
        return await exchange.wait_for_end(begun)

    async def _ask_user(self, asks: Sequence[Question]) -> dict[str, JsonValue]:
        """Ask the user of a client in between; who declines leaves the run waiting."""
        answers: dict[str, JsonValue] = {}
        for ask in asks:
            form = _form(ask)
            response = await self.context.session.elicit_form(
                form.message, form.requested_schema, self.context.request_id
            )
            answers[place_of(ask)] = _answer_in(response)
        return answers

    def _can_ask(self) -> bool:
        """Whether the user of the client can be asked, and may answer."""
        able = self.context.session.client_capabilities
        return bool(able and able.elicitation is not None and self.who.may("answer"))

    def _result_of(self, end: Ended) -> mcp_types.CallToolResult:
        report, text = end.report, end.reply
        if report.outcome == "waiting":
            text += f"\n\nThe run waits for a person: POST /runs/{report.run_id}/answers."
        is_error = report.outcome in ("failed", "interrupted")
        warnings: list[JsonValue] = [*report.warnings]
        fields: dict[str, JsonValue] = {"warnings": warnings} if warnings else {}
        return _result(
            text, is_error=is_error, run_id=report.run_id, outcome=report.outcome, **fields
        )


def _retry_with_answers(report: RunReport) -> mcp_types.InputRequiredResult:
    """Let a client ask its user, and call again."""
    requests = {
        place_of(ask): mcp_types.ElicitRequest(params=_form(ask))
        for ask in report.pending_questions
    }
    return mcp_types.InputRequiredResult(
        input_requests=cast("Any", requests), request_state=report.run_id
    )


def _form(ask: Question) -> mcp_types.ElicitRequestFormParams:
    schema = _ANSWER if ask.kind in ("question", "unknown_outcome") else _DECISION
    return mcp_types.ElicitRequestFormParams(message=shown_text(ask), requested_schema=schema)


def _answer_in(response: object) -> JsonValue:
    """The answer of a user, or the decision; None without one."""
    if not isinstance(response, mcp_types.ElicitResult) or response.action != "accept":
        return None
    content = cast("dict[str, JsonValue]", dict(response.content or {}))
    if "answer" in content or "action" not in content:
        return content.get("answer")
    return {"action": content["action"], "reason": content.get("reason") or ""}
