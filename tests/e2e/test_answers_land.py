"""At each door: an answer lands on the question that was shown, or nowhere.

The model asks to pay 5, then to pay 9999. Whoever says yes to the first has not seen the second.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from replan import Host, InputError, Specialist, Team, ask_user, open_runtime, open_server, run
from replan.errors import ReplanError
from replan.runs.service import Runtime
from replan.testing import ScriptedModel, always
from scripts import THREAD

THINK = "---\ncomplexity: complex\n---\n- [ ] 1. Pay it @agent\n"
END = "---\nverdict: complete\n---\nPaid."
ANNA, RITA = "anna-token-0123456789", "rita-token-0123456789"
TOKENS = f"""
tokens:
  - {{name: anna, token: {ANNA}, roles: [run, answer]}}
  - {{name: rita, token: {RITA}, roles: [run, answer]}}
"""


@dataclass
class Bank:
    """Pays 5 and then 9999, each if a person agrees."""

    paid: list[int] = field(default_factory=list[int])

    @property
    def team(self) -> Team:
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        calls = [
            AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": each}, "id": str(each)}])
            for each in (5, 9999)
        ]
        model = ScriptedModel(
            {"think": always(THINK), "feedback": always(END), "step 1": [*calls, always("ok")]}
        )
        agent = Specialist("agent", "Pays.", chat_model=model, tools=[pay], approve=["pay"])
        return Team(Host(model=model), [agent])


@dataclass
class Door:
    """One way to reach a run: what it asks first is shown when it is made."""

    say: Callable[[object], Awaitable[object]]  # what this asker says; raises where it is refused
    key: str
    reject_elsewhere: Callable[[], Awaitable[object]]


@asynccontextmanager
async def served(bank: Bank, tmp_path) -> AsyncGenerator[Any]:
    (tmp_path / "tokens.yaml").write_text(TOKENS)
    async with (
        open_server({"t": bank.team}, tokens=tmp_path / "tokens.yaml") as server,
        httpx2.AsyncClient(base_url=server.url, timeout=60) as client,
    ):

        async def call(method: str, path: str, body: Any = None, who: str = ANNA, **headers):
            head = {"Authorization": f"Bearer {who}", **headers}
            return await client.request(method, path, json=body, headers=head)

        yield call


async def rested(call: Any, run_id: str) -> Any:
    """What a run is once it rests: then the stream of its events ends."""
    await call("GET", f"/runs/{run_id}/events", Accept="text/event-stream")
    return (await call("GET", f"/runs/{run_id}")).json()


def rejecting(call: Any, run_id: str, key: str) -> Callable[[], Awaitable[object]]:
    async def reject() -> None:
        body = {"answers": {key: "reject: no"}}
        assert (await call("POST", f"/runs/{run_id}/answers", body, RITA)).is_success
        await rested(call, run_id)

    return reject


@asynccontextmanager
async def at_answers(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    async with served(bank, tmp_path) as call:
        run_id = (await call("POST", "/runs", {"task": "Pay."})).json()["run_id"]
        (asked,) = (await rested(call, run_id))["pending_questions"]

        async def say(given: object) -> None:
            answers = given if isinstance(given, dict) else {asked["key"]: given}
            answer = await call("POST", f"/runs/{run_id}/answers", {"answers": answers})
            await rested(call, run_id)
            if not answer.is_success:
                raise InputError(answer.text)

        yield Door(say, asked["key"], rejecting(call, run_id, asked["key"]))


@asynccontextmanager
async def at_chat(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    async with served(bank, tmp_path) as call:
        said = [{"role": "user", "content": "Pay."}]

        async def reply() -> Any:
            answer = await call("POST", "/v1/chat/completions", {"model": "t", "messages": said})
            return answer.json()

        first = await reply()
        said += [
            {"role": "assistant", "content": first["choices"][0]["message"]["content"]},
            {"role": "user", "content": ""},
        ]
        run_id = first["replan"]["run_id"]
        (asked,) = (await rested(call, run_id))["pending_questions"]

        async def say(given: object) -> object:
            said[-1]["content"] = given if isinstance(given, str) else json.dumps(given)
            return await reply()

        yield Door(say, asked["key"], rejecting(call, run_id, asked["key"]))


@asynccontextmanager
async def at_a2a(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    pytest.importorskip("a2a")
    async with served(bank, tmp_path) as call:

        async def send(text: str, name: str, **task: str) -> Any:
            message = {
                "messageId": name, "role": "ROLE_USER", "parts": [{"text": text}], **task
            }  # fmt: skip
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}
            body["params"] = {"message": message}
            return (await call("POST", "/a2a/t", body, **{"A2A-Version": "1.0"})).json()

        run_id = (await send("Pay.", "m1"))["result"]["task"]["id"]
        (asked,) = (await rested(call, run_id))["pending_questions"]

        async def say(given: object) -> object:
            text = given if isinstance(given, str) else json.dumps(given)
            answer = await send(text, f"m-{text}", taskId=run_id)
            if "error" in answer:
                raise InputError(answer["error"]["message"])
            return answer

        yield Door(say, asked["key"], rejecting(call, run_id, asked["key"]))


@asynccontextmanager
async def at_ag_ui(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    pytest.importorskip("ag_ui")
    async with served(bank, tmp_path) as call:

        async def send(text: str, name: str) -> Any:
            said = [{"id": name, "role": "user", "content": text}]
            body = {"threadId": "t", "runId": name, "messages": said}
            body |= {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
            lines = (await call("POST", "/ag-ui/t", body)).text.splitlines()
            return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

        run_id = (await send("Pay.", "m1"))[0]["metadata"]["replan"]["run_id"]
        (asked,) = (await rested(call, run_id))["pending_questions"]

        async def say(given: object) -> object:
            text = given if isinstance(given, str) else json.dumps(given)
            return await send(text, f"m-{text}")

        yield Door(say, asked["key"], rejecting(call, run_id, asked["key"]))


@asynccontextmanager
async def at_sessions(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    async with served(bank, tmp_path) as call:

        async def turn(given: object) -> Any:
            return (await call("POST", "/sessions/s/turns", {"input": given})).json()

        told = (await turn("Pay."))["metadata"]
        (asked,) = told["questions"]
        bound = {"fingerprint": asked["fingerprint"]}

        async def say(given: object) -> object:
            if given == "approve":
                return await turn({asked["key"]: {"action": "approve", **bound}})
            return await turn(given)

        yield Door(say, asked["key"], rejecting(call, told["run_id"], asked["key"]))


@asynccontextmanager
async def at_runtime(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    async with open_runtime(bank.team, storage=tmp_path / "runs.db") as runtime:
        waits = await runtime.run("Pay.")
        (asked,) = waits.pending_questions
        yield Door(
            lambda given: answered(runtime, waits.run_id, asked.key, given),
            asked.key,
            lambda: answered(runtime, waits.run_id, asked.key, {asked.key: "reject: no"}),
        )


async def answered(runtime: Runtime, run_id: str, key: str, given: object) -> object:
    answers = given if isinstance(given, dict) else {key: given}
    return await (await runtime.answer(run_id, answers))


@asynccontextmanager
async def at_command(bank: Bank, tmp_path) -> AsyncGenerator[Door]:
    async with open_runtime(bank.team, storage=tmp_path / "runs.db") as runtime:
        waits = await runtime.run("Pay.", thread_id="t")
        (asked,) = waits.pending_questions

        async def say(given: object) -> object:
            resumed = given if isinstance(given, dict) else {asked.key: given}
            return await run(runtime.graph, Command(resume=resumed), config=THREAD)

        yield Door(say, asked.key, lambda: say({asked.key: "reject: no"}))


DOORS = [
    at_answers, at_chat, at_a2a, at_ag_ui, at_sessions, at_runtime, at_command
]  # fmt: skip


async def tried(door: Door, given: object) -> str:
    """Say something; return why it was refused, if it was refused by an error."""
    try:
        await door.say(given)
    except ReplanError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("opened", DOORS)
async def test_the_same_request_twice_decides_once(opened, tmp_path):
    bank = Bank()
    async with opened(bank, tmp_path) as door:
        for _ in range(3):
            await tried(door, "approve")
        assert bank.paid == [5]


@pytest.mark.parametrize("opened", DOORS)
async def test_two_tabs_that_say_the_same_at_once_decide_once(opened, tmp_path):
    bank = Bank()
    async with opened(bank, tmp_path) as door:
        await asyncio.gather(tried(door, "approve"), tried(door, "approve"))
        await tried(door, "approve")
        assert bank.paid == [5]


@pytest.mark.parametrize("opened", DOORS)
async def test_what_was_rejected_at_another_door_cannot_be_approved(opened, tmp_path):
    bank = Bank()
    async with opened(bank, tmp_path) as door:
        await door.reject_elsewhere()
        await tried(door, "approve")
        assert bank.paid == []


@pytest.mark.parametrize("opened", DOORS)
async def test_a_key_that_is_not_open_takes_no_answer(opened, tmp_path):
    bank = Bank()
    async with opened(bank, tmp_path) as door:
        for key in ("7/agent/1", "1/agent/9", "9", "plan"):
            await tried(door, {key: "approve"})
            assert bank.paid == [], key
        await tried(door, "approve")
        assert bank.paid == [5]
        # The key of what was answered before.
        await tried(door, {door.key: "approve"})
        assert bank.paid == [5]


@pytest.mark.parametrize("opened", [at_answers, at_runtime, at_command])
async def test_the_beginning_of_a_key_is_not_enough_where_nobody_knows_what_was_shown(
    opened, tmp_path
):
    bank = Bank()
    async with opened(bank, tmp_path) as door:
        assert "whole key" in await tried(door, {"1": "approve"})
        assert bank.paid == []


async def test_a_question_that_was_answered_before_takes_no_second_answer(tmp_path):
    def both(_):
        return f"{ask_user('Size?')!r} {ask_user('Colour?')!r}"

    team = Team(Host("offline"), [Specialist("q", "Asks.", run=both)])
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        waits = await runtime.run({"plan": "- [ ] 1. Ask @q\n"})
        await (await runtime.answer(waits.run_id, {"1/q/1": "large"}))
        for stale in ({"1/q/1": "large"}, "1/q/1=large", {"7": "10"}):
            with pytest.raises(InputError, match="open: '1/q/2'"):
                await runtime.answer(waits.run_id, stale)
        done = await (await runtime.answer(waits.run_id, "red"))
    assert done.results[1].text == "'large' 'red'"


async def test_a_key_of_a_request_makes_it_one(tmp_path):
    bank = Bank()
    async with served(bank, tmp_path) as call:
        starts = [await call("POST", "/runs", {"task": "Pay."}, **{"Idempotency-Key": "k1"})
                  for _ in range(2)]  # fmt: skip
        (run_id,) = {each.json()["run_id"] for each in starts}
        (asked,) = (await rested(call, run_id))["pending_questions"]
        for _ in range(2):
            body = {"answers": {asked["key"]: "approve"}}
            answer = await call(
                "POST", f"/runs/{run_id}/answers", body, **{"Idempotency-Key": "k2"}
            )
            assert answer.is_success
            await rested(call, run_id)
        assert bank.paid == [5]
        other = await call(
            "POST",
            f"/runs/{run_id}/answers",
            {"answers": {asked["key"]: "reject: no"}},
            **{"Idempotency-Key": "k2"},
        )
        assert (other.status_code, "this name" in other.text) == (422, True)
        chats = [
            (
                await call(
                    "POST",
                    "/v1/chat/completions",
                    {"model": "t", "messages": [{"role": "user", "content": "Pay."}]},
                    **{"Idempotency-Key": "k3"},
                )
            ).json()
            for _ in range(2)
        ]
        assert len({each["replan"]["run_id"] for each in chats}) == 1
        assert chats[0]["choices"] == chats[1]["choices"]


async def test_the_same_history_joins_the_run_that_works_and_is_new_once_it_rests(tmp_path):
    begun, gate, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(context):
        begun.set()
        await gate.wait()
        done.append(context.task_description)
        return "done"

    model = ScriptedModel({"think": always(THINK), "feedback": always(END)})
    team = Team(Host(model=model), [Specialist("agent", "Works.", run=work, effects="pure")])
    body = {"model": "t", "messages": [{"role": "user", "content": "Pay."}]}
    async with (
        open_server({"t": team}) as server,
        httpx2.AsyncClient(base_url=server.url, timeout=60) as client,
    ):
        head = {"Authorization": f"Bearer {server.token}"}
        first = asyncio.ensure_future(client.post("/v1/chat/completions", json=body, headers=head))
        await begun.wait()
        again = {"json": {**body, "stream": True}, "headers": head}
        async with client.stream("POST", "/v1/chat/completions", **again) as second:
            lines = second.aiter_lines()
            joined = json.loads((await anext(lines)).removeprefix("data: "))
            gate.set()
            said = [line async for line in lines]
        assert joined["id"] == (await first).json()["id"]
        assert "Paid." in "".join(said)
        assert len(done) == 1
        other = await client.post("/v1/chat/completions", json=body, headers=head)
        assert other.json()["id"] != joined["id"]
        assert len(done) == 2


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_was_rejected_while_a_form_of_mcp_was_open_cannot_be_approved(mode, tmp_path):
    pytest.importorskip("mcp")
    from mcp import types  # noqa: PLC0415 - an extra
    from mcp.client import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    bank, forms = Bank(), list[str]()
    async with served(bank, tmp_path) as call:

        async def asked(_, params):
            forms.append(params.message)
            if len(forms) == 1:
                (waits,) = (await call("GET", "/runs")).json()["runs"]
                run_id = waits["run_id"]
                (ask,) = (await rested(call, run_id))["pending_questions"]
                await rejecting(call, run_id, ask["key"])()
                return types.ElicitResult(action="accept", content={"action": "approve"})
            return types.ElicitResult(action="accept", content={"action": "reject"})

        address = str((await call("GET", "/health")).url).replace("/health", "/mcp")
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {ANNA}"}, timeout=60) as http,
            Client(
                streamable_http_client(address, http_client=http),
                mode=mode,
                elicitation_callback=asked,
            ) as client,
        ):
            await client.call_tool("t", {"task": "Pay."})
    assert forms
    assert bank.paid == []
