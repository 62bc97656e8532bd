"""A session whose workers are killed in the middle of each turn: nothing is lost or done twice."""

import json
from pathlib import Path
from typing import Any

import warm
from e2e.test_sessions_across_processes import reply
from replan import Host, Specialist, Team, open_runtime, open_storage
from replan.sessions import ClientAgentAdapter, build_agent
from replan.testing import OpenAIServer, ScriptedModel

TURN = str(Path(__file__).parent / "kept_turn.py")


class Worker:
    """Takes turns, each in a process of its own."""

    def __init__(self, server: str, where: str, folder: Path) -> None:
        self.done = folder / "done"
        self.done.touch()
        # The file is killed at one moment, the server at each.
        self.moments = {"pay", "append"} if where.startswith("postgres") else {"pay"}
        self.words = [TURN, server, where, str(self.done)]

    def killed(self, name: str, given: Any, moment: str) -> None:
        if moment in self.moments:
            self.turn(name, given, moment)

    def turn(self, name: str, given: Any, kill: str = "") -> Any:
        ended = warm.run(*self.words, name, json.dumps(given), kill, timeout=60)
        assert (ended.returncode == 0) is not bool(kill)
        return kill or json.loads(ended.stdout)

    @property
    def effects(self) -> list[list[str]]:
        return [line.split() for line in self.done.read_text().splitlines()]


async def test_each_turn_is_killed_and_delivered_again(where, tmp_path):
    with OpenAIServer(reply) as server:
        worker = Worker(server.base_url, where, tmp_path)
        worker.killed("1", "Paint the hall.", "append")
        asked = worker.turn("1", "Paint the hall.")
        assert asked["response"] == "Which colour?"
        worker.killed("2", "Blue.", "pay")
        async with open_storage(where) as storage:
            # What the killed worker did is seen by everybody, and the session is as it was.
            async with open_runtime(team(), storage=storage) as runtime:
                (view,) = await runtime.runs(labels={"session": "s"})
                assert (view.run_id, view.outcome) == (asked["metadata"]["run_id"], "interrupted")
            client = ClientAgentAdapter(storage, build_agent(team()), user="anna")
            assert len((await client.history("s")).messages) == 2
        worker.killed("2", "Blue.", "append")
        bought = worker.turn("2", "Blue.")
        (approval,) = bought["metadata"]["questions"]
        decision = {"action": "approve", "fingerprint": approval["fingerprint"]}
        worker.killed("3", {approval["key"]: decision}, "append")
        last = worker.turn("3", {approval["key"]: decision})
        assert last["response"] == "It is painted and paid."
        calls = server.calls
    # A service that knows its keys again sees each of them once.
    assert len({tuple(each) for each in worker.effects}) == 3
    assert [name for name, _ in worker.effects] == ["choose", "pay", "pay", "ship"]
    assert (calls["think"], calls["feedback"], calls["step 2/buyer"]) == (1, 1, 3)
    async with open_storage(where) as storage:
        client = ClientAgentAdapter(storage, build_agent(team()), user="anna")
        context = await client.export("s")
    assert len(context.dialogue_history) == 6
    assert [each.tool_name for each in context.tool_execution_history] == ["pay", "ship"]
    assert context.session_metadata["version"] == 3


def team() -> Team:
    nobody = Specialist(name="nobody", intended_use="Nothing.", run=lambda _: "", effects="pure")
    return Team(host=Host(model=ScriptedModel({})), specialists=[nobody])
