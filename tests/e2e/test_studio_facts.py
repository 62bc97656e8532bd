"""On LangGraph's server a run uses the facts of whom the server has authenticated."""

import pytest
from langgraph_sdk import get_client

AUTH = """\
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(authorization: str) -> dict:
    return {"identity": authorization.removeprefix("Bearer ")}
"""
TEAM = """\
host: {model: offline, remembers: true}
specialists:
  - {use: "replan_local:librarian"}
"""
ASKED = "What do you know about parcels?"


@pytest.fixture(scope="module")
def url(serve_studio, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    (folder / "auth.py").write_text(AUTH)
    (folder / "team.yaml").write_text(TEAM)
    variables = {"REPLAN_TEAM": str(folder / "team.yaml")}
    return serve_studio(folder, variables, auth={"path": "./auth.py:auth"})


async def asked(url, who, request, **more):
    given = {"messages": [{"role": "user", "content": request}]}
    async with get_client(url=url, headers={"Authorization": f"Bearer {who}"}) as client:
        return await client.runs.wait(None, "replan", input=given, raise_error=False, **more)


async def test_a_client_has_the_facts_of_its_user_and_of_no_other_one(url):
    await asked(url, "eva", "Remember that the parcels go to Oslo.")
    state = await asked(url, "eva", ASKED)
    assert "> the parcels go to Oslo." in state["final_answer"]["content"]
    assert state["settings"]["user"] == "eva"
    posing = {"configurable": {"langgraph_auth_user_id": "eva"}}
    for more in ({}, {"config": posing}, {"context": {"user": "bob"}}):
        state = await asked(url, "bob", ASKED, **more)
        assert state["final_answer"]["content"] == "Nothing is remembered of this user."
    state = await asked(url, "bob", ASKED, context={"user": "eva"})
    assert "the server has authenticated another user" in state["__error__"]["message"]
