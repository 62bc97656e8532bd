"""On LangGraph's server a run uses the facts of whom the server has authenticated.

Each run has a loop of its own there; the server then watches it for calls that block it.
"""

import shutil
import signal
from pathlib import Path

import pytest
from langgraph_sdk import get_client

DATA = Path(__file__).parents[2] / "examples" / "data"

AUTH = """\
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(authorization: str) -> dict:
    return {"identity": authorization.removeprefix("Bearer ")}
"""
TEAM = """\
workspace: data
host: {model: offline, remembers: true}
specialists:
  - {use: "replan_local:data_analyst"}
  - {use: "replan_local:librarian"}
  - {use: "replan_local:writer"}
"""
TASK = "total revenue by region from sales.csv; write report"
ASKED = "What do you know about parcels?"


@pytest.fixture(scope="module")
def url(serve_studio, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    (folder / "auth.py").write_text(AUTH)
    (folder / "team.yaml").write_text(TEAM)
    shutil.copytree(DATA, folder / "data")
    variables = {"REPLAN_TEAM": str(folder / "team.yaml"), "BG_JOB_ISOLATED_LOOPS": "true"}
    auth = {"path": "./auth.py:auth"}
    # At the end it is told by the signal of service managers, and must end.
    return serve_studio(folder, variables, auth=auth, end=signal.SIGTERM)


async def asked(url, who, request, thread=None, **more):
    given = {"messages": [{"role": "user", "content": request}]}
    async with client_of(url, who) as client:
        return await client.runs.wait(thread, "replan", input=given, raise_error=False, **more)


def client_of(url, who):
    return get_client(url=url, headers={"Authorization": f"Bearer {who}"})


async def test_a_client_has_the_facts_of_its_user_and_of_no_other_one(url):
    await asked(url, "eva", "Remember that the parcels go to Oslo.")
    state = await asked(url, "eva", ASKED)
    assert "> the parcels go to Oslo." in state["final_answer"]["content"]
    assert state["settings"]["user"] == "eva"
    posing = {"configurable": {"langgraph_auth_user_id": "eva"}}
    for more in ({}, {"config": posing}, {"context": {"user": "bob"}}):
        state = await asked(url, "bob", ASKED, **more)
        assert "final_answer" in state, state
        assert state["final_answer"]["content"] == "Nothing is remembered of this user."
    state = await asked(url, "bob", ASKED, context={"user": "eva"})
    assert "the server has authenticated another user" in state["__error__"]["message"]


async def test_runs_on_loops_of_their_own_go_on_with_a_thread(url):
    async with client_of(url, "eva") as client:
        thread = (await client.threads.create())["thread_id"]
    state = await asked(url, "eva", TASK, thread)
    assert state["outcome"] == "completed"
    state = await asked(url, "eva", "calculate 2 + 2", thread)
    assert "4" in state["messages"][-1]["content"]
