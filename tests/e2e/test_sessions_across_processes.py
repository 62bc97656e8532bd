"""A session whose turns are taken by one process after the other, over the real OpenAI client."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

import warm
from replan.sessions import AgentContext
from replan.testing import OpenAIServer

TURN = str(Path(__file__).parent / "session_turn.py")
PLAN = """\
---
complexity: complex
---
- [ ] 1. Choose @asker
- [ ] 2. Buy it @buyer (after 1)
"""


def calling(name: str, **args: Any) -> AIMessage:
    call = {"name": name, "args": args, "id": f"call-{name}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def reply(request: Any) -> Any:
    """What a model says that knows nothing but what it is told."""
    if request.call.node == "think":
        is_simple = "capital" in str(request.messages[-1].content)
        return "---\ncomplexity: simple\n---\nParis." if is_simple else PLAN
    if request.call.step == 2:
        done = sum(isinstance(each, ToolMessage) for each in request.messages)
        return (calling("pay", amount=5), calling("ship", place="Rome"), "Bought.")[done]
    return "---\nverdict: complete\n---\nIt is painted and paid."


class Session:
    """A session in a file, and what its tools did."""

    def __init__(self, folder: Path, server: str) -> None:
        self.place, self.done, self.server = folder / "session.json", folder / "done", server
        self.place.write_text(json.dumps(AgentContext(session_id="anna").to_dict()))
        self.done.touch()

    def turn(self, given: Any, *kill: str) -> Any:
        words = [TURN, self.server, str(self.place), str(self.done), json.dumps(given), *kill]
        ended = warm.run(*words, timeout=60)
        return json.loads(ended.stdout) if ended.returncode == 0 else ended

    @property
    def context(self) -> AgentContext:
        return AgentContext.from_dict(json.loads(self.place.read_text()))

    @property
    def effects(self) -> list[list[str]]:
        return [line.split() for line in self.done.read_text().splitlines()]


@pytest.mark.parametrize("is_killed", [False, True], ids=["whole", "killed in the tool loop"])
def test_each_turn_is_taken_by_a_process_of_its_own(tmp_path, is_killed):
    with OpenAIServer(reply) as server:
        session = Session(tmp_path, server.base_url)
        asked = session.turn("Paint the hall.")
        assert asked["response"] == "Which colour?"
        if is_killed:
            before = session.context
            assert session.turn("Blue.", "kill").returncode != 0
            assert session.context == before
        bought = session.turn("Blue.")
        (approval,) = bought["metadata"]["questions"]
        assert (approval["kind"], bought["metadata"]["stage"]) == ("approval", "approval")
        assert [each["tool_name"] for each in bought["tool_execution_results"]] == ["pay"]
        not_yet = session.turn("yes")
        assert approval["fingerprint"] in not_yet["response"]
        decision = {"action": "approve", "fingerprint": approval["fingerprint"]}
        last = session.turn({approval["key"]: decision})
        assert last["response"] == "It is painted and paid."
        capital = session.turn("And what is the capital of France?")
        assert capital["response"] == "Paris."
        calls = server.calls
    # A service that knows its keys again sees each of them once.
    assert {name for name, _ in session.effects} == {"choose", "pay", "ship"}
    assert len({key for _, key in session.effects}) == 3
    assert len(session.effects) == (5 if is_killed else 3)
    # Only what the killed process had asked for is asked for again.
    assert calls["step 2/buyer"] == (4 if is_killed else 3)
    assert (calls["think"], calls["feedback"]) == (2, 1)
    context = session.context
    assert [each.role for each in context.dialogue_history] == ["user", "assistant"] * 5
    assert [each.tool_name for each in context.tool_execution_history] == ["pay", "ship"]
    assert set(context.project_state) == {"plan"}
