"""Questions and approval in Studio: what a person sees there, and how the run goes on."""

from typing import Any

import pytest
from langgraph_sdk import get_client

from replan import Approval, waiting_for

WORK = '''\
"""A specialist that asks, and one that does not."""

from replan import ask_user


def asks(context):
    return f"heard {ask_user(context.task_description)}"


def works(context):
    return " and ".join(context.inputs.values()) or "done"
'''
TEAM = """\
host:
  model: offline
specialists:
  - name: asker
    intended_use: Asks.
    run: studio_asking_team:asks
  - name: worker
    intended_use: Works.
    run: studio_asking_team:works
"""
PLAN = """\
- [ ] 1. Which colour? @asker
- [ ] 2. Which size? @asker
- [ ] 3. Aside @worker
- [ ] 4. Both @worker (after 1, 2)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, serve_studio) -> str:
    folder = tmp_path_factory.mktemp("asking")
    (folder / "studio_asking_team.py").write_text(WORK, "utf-8")
    (folder / "team.yaml").write_text(TEAM, "utf-8")
    return serve_studio(folder, {"REPLAN_TEAM": str(folder / "team.yaml")})


async def interrupted(client: Any, thread: str) -> list[Any]:
    state = await client.threads.get_state(thread)
    return [interrupt for task in state["tasks"] for interrupt in task["interrupts"]]


async def resume(client: Any, thread: str, value: object, **options: Any) -> Any:
    return await client.runs.wait(thread, "replan", command={"resume": value}, **options)


async def test_questions_are_shown_and_answered_one_by_one_in_any_order(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        state = await client.runs.wait(thread, "replan", input={"plan": PLAN})
        asked = waiting_for(await interrupted(client, thread))
        assert asked == waiting_for(state)
        assert [(q.key, q.text) for q in asked] == [
            ("1/asker/1", "Which colour?"),
            ("2/asker/1", "Which size?"),
        ]
        assert set(state["current_specialist_results"]) == {"3/worker"}
        # A text alone does not say which question it answers.
        await resume(client, thread, "large")
        (again,) = await interrupted(client, thread)
        assert "One answer is not enough" in again["value"]["problem"]
        assert [each["description"] for each in again["value"]["action_requests"]] == [
            "Which colour?",
            "Which size?",
        ]
        assert "decisions" in again["response_schema"]["anyOf"][1]["properties"]
        await resume(client, thread, {"2/asker/1": "large"})
        (left,) = waiting_for(await interrupted(client, thread))
        assert left.key == "1/asker/1"
        # New limits hold from there on, where they are no looser than the team's.
        new = {"limits": {"step_retries": 1, "max_model_calls": 1_000_000}}
        state = await resume(client, thread, "blue", context=new)
    assert state["outcome"] == "completed"
    assert state["settings"]["limits"]["step_retries"] == 1
    assert state["settings"]["limits"]["max_model_calls"] == 200
    texts = {
        key: result["result"]["content"]
        for key, result in state["current_specialist_results"].items()
    }
    assert texts == {
        "1/asker": "heard blue",
        "2/asker": "heard large",
        "3/worker": "done",
        "4/worker": "heard blue and heard large",
    }
    assert {q["answer"] for q in state["questions"].values()} == {"blue", "large"}


async def test_a_plan_is_shown_changed_with_a_mistake_and_then_run_as_the_person_wrote_it(url):
    context = {"approval": "always"}
    plan = "- [ ] 1. One @worker\n- [ ] 2. Two @worker (after 1)\n"
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        state = await client.runs.wait(thread, "replan", input={"plan": plan}, context=context)
        about = waiting_for(state).fingerprint
        assert waiting_for(state) == Approval(
            approve=plan, reason="A plan was handed in.", fingerprint=about
        )
        assert about
        wrong = {"action": "edit", "plan": plan.replace("after 1", "after 7")}
        state = await resume(client, thread, wrong)
        assert "line 2" in waiting_for(state).problem
        state = await resume(client, thread, plan.replace("Two", "Second"))
    assert state["outcome"] == "completed"
    assert state["current_plan"]["steps"][1]["description"] == "Second"
    assert [update["by"] for update in state["current_plan"]["update_history"]] == ["person"]
