"""An MCP server: each team is a tool; its progress is reported, and its questions are asked by MCP.

A client that cannot ask its user gets the question as the result. What a person has to decide is
never answered by the model that called the tool.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import mcp_types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import is_version_at_least
from pydantic import JsonValue
from starlette.types import ASGIApp, Receive, Scope, Send

from replan.errors import ReplanError
from replan.events.types import Event
from replan.log.report import RunReport
from replan.runs.run import Run
from replan.server.callers.identity import Identity, check_role
from replan.server.doors.conversations import place_of, progress_line, reply_text
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams, team_services
from replan.server.work import answer_run, begin_run
from replan.state.questions import Question

_RETRIES_WITH_ANSWERS = "2026-07-28"
"""The version from which a client calls again with answers, instead of being asked in between."""

_MOST_BYTES = 4_000_000
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
    tools = {_tool_name(name): name for name in served.runtimes}

    async def listed(_: Any, __: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[_tool(served, *each) for each in tools.items()])

    async def called(
        context: Any, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
        try:
            door = _Door(served, context.request.state.who, context)
            return await door.call(tools.get(params.name, params.name), params)
        except ReplanError as error:
            return _result(str(error), is_error=True)

    server: Server[Any] = Server("replan", on_list_tools=listed, on_call_tool=called)
    return StreamableHTTPSessionManager(app=server, max_request_body_size=_MOST_BYTES)


def bind_sessions_to_tokens(door: ASGIApp) -> ASGIApp:
    """Return the door of a manager in which a session is known only to the token that began it."""

    async def owned_door(scope: Scope, receive: Receive, send: Send) -> None:
        who: Identity = scope["state"]["who"]
        # MCP's manager compares the client and the subject of what it takes for OAuth's token.
        token = AccessToken(token="", client_id=who.name, subject=who.tenant, scopes=[])
        await door({**scope, "user": AuthenticatedUser(token)}, receive, send)

    return owned_door


def _tool_name(team: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", team)[:64]


def _tool(served: ServedTeams, name: str, team: str) -> mcp_types.Tool:
    members = "; ".join(
        f"{each.name}: {each.intended_use}" for each in team_services(served.runtimes[team]).team
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
        if params.request_state:
            run = await self._continue(params.request_state, params.input_responses or {})
        else:
            run = await self._begin(team, params.arguments or {})
        while True:
            view = await self._wait_for_rest(run)
            if view.outcome != "waiting" or not self._can_ask():
                return self._result_of(view)
            if is_version_at_least(self.context.protocol_version, _RETRIES_WITH_ANSWERS):
                return _retry_with_answers(view)
            given = await self._ask_user(view.pending_questions)
            if not given:
                return self._result_of(view)
            run = await answer_run(self.served, self.who, view, given)

    async def _begin(self, team: str, arguments: Mapping[str, Any]) -> Run:
        unknown = sorted(arguments.keys() - {"task", "plan"})
        task, plan = arguments.get("task"), arguments.get("plan")
        is_read = isinstance(task, str) and task.strip() and isinstance(plan, str | None)
        if unknown or not is_read:
            fix = "Give `task`, a text, and `plan`, a text, if there is one."
            raise RefusedError(422, "bad_request", f"These arguments cannot be used. {fix}")
        # The caller of a tool is a model.
        handed_in = {} if plan is None else {"plan": plan, "plan_by": "model"}
        given = {"messages": [("user", task)], **handed_in}
        options: Any = {"run_id": self.served.new_id(), "labels": {"door": "mcp"}}
        return await begin_run(self.served, self.who, team, given, **options)

    async def _continue(self, run_id: str, responses: Mapping[str, Any]) -> Run:
        record = await self.served.record_of(run_id, self.who)
        runtime = self.served.runtime_of(record)
        waiting = (await runtime.get(run_id)).pending_questions
        asked = {place_of(ask): ask for ask in waiting}
        given: dict[str, JsonValue] = {}
        for place, response in responses.items():
            ask = asked.get(place)
            if ask is not None and isinstance(response, mcp_types.ElicitResult):
                given |= _answer_in(ask, response)
        if not given:
            return Run(runtime, run_id)
        check_role(self.who, "answer")
        return await answer_run(self.served, self.who, record, given)

    async def _wait_for_rest(self, run: Run) -> RunReport:
        """Wait until a run rests, and report its progress meanwhile."""
        done = 0
        async for event in run.events():
            done += event.type == "specialist_completed"
            if course := progress_line(event):
                await self._report(done, event, course)
        await run
        return await run.report()

    async def _report(self, done: int, event: Event, course: str) -> None:
        await self.context.session.report_progress(event.seq or done, None, course.strip())

    async def _ask_user(self, asks: Sequence[Question]) -> dict[str, JsonValue]:
        """Ask the user of a client in between; who declines leaves the run waiting."""
        given: dict[str, JsonValue] = {}
        for ask in asks:
            form = _form(ask)
            response = await self.context.session.elicit_form(
                form.message, form.requested_schema, self.context.request_id
            )
            given |= _answer_in(ask, response)
        return given

    def _can_ask(self) -> bool:
        """Whether the user of the client can be asked, and may answer."""
        able = self.context.session.client_capabilities
        return bool(able and able.elicitation is not None and self.who.may("answer"))

    def _result_of(self, view: RunReport) -> mcp_types.CallToolResult:
        text = reply_text(view)
        if view.outcome == "waiting":
            text += f"\n\nThe run waits for a person: POST /runs/{view.run_id}/answers."
        is_error = view.outcome in ("failed", "interrupted")
        warnings: list[JsonValue] = [*view.warnings]
        fields: dict[str, JsonValue] = {"warnings": warnings} if warnings else {}
        return _result(text, is_error=is_error, run_id=view.run_id, outcome=view.outcome, **fields)


def _retry_with_answers(view: RunReport) -> mcp_types.InputRequiredResult:
    """Let a client ask its user, and call again."""
    asked = {
        place_of(ask): mcp_types.ElicitRequest(params=_form(ask)) for ask in view.pending_questions
    }
    return mcp_types.InputRequiredResult(
        input_requests=cast("Any", asked), request_state=view.run_id
    )


def _form(ask: Question) -> mcp_types.ElicitRequestFormParams:
    text = "\n\n".join([*filter(None, [ask.problem, *ask.remarks]), ask.text])
    schema = _ANSWER if ask.kind in ("question", "unknown_outcome") else _DECISION
    return mcp_types.ElicitRequestFormParams(message=text, requested_schema=schema)


def _answer_in(ask: Question, response: mcp_types.ElicitResult) -> dict[str, JsonValue]:
    """The answer of a user, bound to what was shown; empty without an answer."""
    if response.action != "accept" or not response.content:
        return {}
    content = cast("dict[str, JsonValue]", dict(response.content))
    is_decision = ask.kind in ("approval", "plan")
    kept: dict[str, JsonValue] = (
        {"action": content.get("action"), "reason": content.get("reason") or ""}
        if is_decision
        else {"answer": content.get("answer")}
    )
    return {ask.key: {**kept, "fingerprint": ask.fingerprint}}
