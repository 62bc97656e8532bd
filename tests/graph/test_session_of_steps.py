"""Steps read the session that they work for, and change its project state."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from replan import (
    ExecutionContext,
    Host,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
    open_storage,
    run,
    run_sync,
)
from replan.sessions import AgentContext, AgentResult, ClientAgentAdapter, build_agent
from replan.testing import ScriptedModel, always
from scripts import DONE

CONTEXT = AgentContext(
    session_id="s",
    current_stage="question",
    project_state={"research_findings": ["a"], "plan": "- [x] 1. Old @looks\n", "empty": None},
    session_metadata={"lang": "de"},
)


def plan(*lines: str) -> str:
    return "---\ncomplexity: complex\n---\n" + "".join(f"- [ ] {line}\n" for line in lines)


def team_of(think: str, *works: Callable[[ExecutionContext], Any]) -> Team:
    model = ScriptedModel({"think": think, "feedback": always(DONE)})
    specialists = [Specialist(each.__name__, "Works.", run=each, effects="pure") for each in works]
    return Team(host=Host(model=model), specialists=specialists)


def changing(text: str, **changes: Any) -> SpecialistResult:
    return SpecialistResult(result=AIMessage(text), project_state=changes)


async def after_turn(team: Team, context: AgentContext = CONTEXT) -> tuple[AgentResult, Any]:
    """The result of a turn, and the project state behind it, by way of JSON."""
    result = await build_agent(team).process("Go.", context)
    updates = json.loads(json.dumps(result.context_updates))
    return result, context.apply(updates).project_state


async def test_a_step_reads_the_session_and_changes_nothing_by_what_it_does_with_it():
    seen = []

    def looks(context: ExecutionContext) -> str:
        session = context.session
        assert session is not None
        seen.append(session.model_dump())
        session.project_state["research_findings"].append("b")  # type: ignore[union-attr]
        session.project_state["new"] = 1
        session.metadata["lang"] = "fr"
        return "seen"

    team = team_of(plan("1. One @looks", "2. Two @looks (after 1)"), looks)
    _, state = await after_turn(team)
    first = {
        "id": "s",
        "stage": "question",
        "project_state": {"research_findings": ["a"], "empty": None},
        "metadata": {"lang": "de"},
    }
    assert seen == [first, first]
    assert CONTEXT.session_metadata == {"lang": "de"}
    assert {**state, "plan": ""} == {"research_findings": ["a"], "empty": None, "plan": ""}


async def test_a_step_outside_of_a_session_has_none_and_a_team_inside_of_a_step_neither():
    seen = []

    def looks(context: ExecutionContext) -> str:
        seen.append(context.session)
        return "seen"

    async def outer(context: ExecutionContext) -> str:
        inner = team_of(plan("1. Look @looks"), looks)
        return (await run(inner, "Look.")).text

    await run(team_of(plan("1. Look @looks"), looks), "Look.")
    await after_turn(team_of(plan("1. Look @outer"), outer))
    await run(team_of(plan("1. Look @looks"), looks), "Look.")
    assert seen == [None, None, None]


async def test_what_steps_return_of_the_project_state_stands_in_the_updates():
    def writes(_: ExecutionContext) -> SpecialistResult:
        return changing("x", research_findings=["b"], empty=None, brief={"a": [1, None]})

    result, state = await after_turn(team_of(plan("1. Write @writes"), writes))
    updates: Any = result.context_updates["project_state"]
    assert updates["research_findings"] == {"set": ["b"]}
    assert updates["empty"] is None
    assert state["brief"] == {"a": [1, None]}
    assert "empty" not in state
    assert result.metadata["warnings"] == []


async def test_of_dependent_steps_the_later_one_counts_and_of_parallel_ones_a_warning_tells():
    def writes(context: ExecutionContext) -> SpecialistResult:
        return changing("x", at=context.plan_step.id, same="one")

    lines = ("2. First @writes", "1. Then @writes (after 2)")
    result, state = await after_turn(team_of(plan(*lines), writes))
    assert (state["at"], result.metadata["warnings"]) == (1, [])
    lines = ("1. One @writes", "2. Two @writes", "3. Three @writes (after 1, 2)")
    result, state = await after_turn(team_of(plan(*lines), writes))
    assert state["at"] == 3
    (warning,) = result.metadata["warnings"]  # type: ignore[misc]
    assert "Steps 1 and 2 both changed 'at'" in str(warning)
    assert "same" not in str(warning)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"run": {}}, "project_state.run: this entry is Replan's own"),
        ({"ok": 1, "threads": None}, "project_state.threads"),
        ({"x": float("nan")}, "project_state.x"),
        ({"x": "y" * 1_100_000}, "project_state"),
        ({"x": "\ud800"}, "project_state.x"),
        ({"x": 10**400}, "project_state.x"),
    ],
)
async def test_a_change_that_cannot_be_is_an_error_of_its_step(changes, told):
    def writes(_: ExecutionContext) -> SpecialistResult:
        return changing("x", **changes)

    result, state = await after_turn(team_of(plan("1. Write @writes"), writes))
    (failure,) = result.metadata["failures"]  # type: ignore[misc]
    assert told in str(failure["error"])  # type: ignore[index, call-overload]
    assert state.keys() == CONTEXT.project_state.keys()


async def test_a_failed_step_changes_nothing():
    def writes(_: ExecutionContext) -> SpecialistResult:
        return changing("no", x=1).replace(status="failed", retry=False)

    _, state = await after_turn(team_of(plan("1. Write @writes"), writes))
    assert "x" not in state


async def test_each_step_changes_the_session_in_the_turn_in_which_it_was_done():
    def writes(_: ExecutionContext) -> SpecialistResult:
        return changing("x", brief="first")

    seen = []

    def asks(context: ExecutionContext) -> SpecialistResult:
        answer = ask_user("Which?")
        assert context.session is not None
        seen.append(context.session.project_state.get("brief"))
        return changing(answer, answer=answer)

    team = team_of(plan("1. Write @writes", "2. Ask @asks (after 1)"), writes, asks)
    agent = build_agent(team)
    first = await agent.process("Go.", CONTEXT)
    context = CONTEXT.apply(first.context_updates)
    assert (first.response, context.project_state["brief"]) == ("Which?", "first")
    # The client changes it in between, which counts.
    context = context.replace(project_state={**context.project_state, "brief": "client's"})
    second = await agent.process("Blue", context)
    after = context.apply(second.context_updates)
    assert (second.response, seen) == ("Done.", ["client's"])
    assert after.project_state["brief"] == "client's"
    assert after.project_state["answer"] == "Blue"


async def test_a_turn_that_was_cut_off_and_is_delivered_again_has_the_changes(tmp_path):
    done, at_work = [], asyncio.Event()

    def writes(_: ExecutionContext) -> SpecialistResult:
        done.append("writes")
        return changing("x", brief="first")

    async def hangs(_: ExecutionContext) -> SpecialistResult:
        done.append("hangs")
        if not at_work.is_set():
            at_work.set()
            await asyncio.Event().wait()
        return changing("y", end=True)

    lines = plan("1. Write @writes", "2. Hang @hangs (after 1)")
    async with open_storage(tmp_path / "s.sqlite") as storage:

        def client() -> ClientAgentAdapter:
            agent = build_agent(team_of(lines, writes, hangs))
            return ClientAgentAdapter(storage, agent, user="anna")

        turn = asyncio.ensure_future(client().process("s", "Go.", turn_id="t"))
        await at_work.wait()
        turn.cancel()
        await asyncio.wait({turn})
        result = await client().process("s", "Go.", turn_id="t")
        exported = await client().export("s")
    assert result.response == "Done."
    assert done == ["writes", "hangs", "hangs"]
    assert {**exported.project_state, "plan": ""} == {"brief": "first", "end": True, "plan": ""}


def test_a_run_without_a_session_keeps_the_changes_in_its_result():
    def writes(_: ExecutionContext) -> SpecialistResult:
        return changing("x", brief="first")

    result = run_sync(team_of(plan("1. Write @writes"), writes), "Go.")
    assert result.results[1].project_state == {"brief": "first"}
