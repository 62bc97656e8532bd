"""Facts of a team from a file, with a model over HTTP, in a storage that is opened anew."""

import json
from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from replan import RunSettings, TeamFileError, open_runtime, open_storage
from replan.prompts.sections import sections_of
from replan.team.team_file import read_team_file
from replan.testing import OpenAIServer
from scripts import SIMPLE

TEAM = """\
host: {model: main, remembers: true}
specialists:
  - {name: clerk, intended_use: Looks up., chat_model: main, remembers: true}
models:
  main: {model: big-one, base_url: URL}
"""
PLAN = {"plan": "- [ ] 1. Write to the customer @clerk\n"}
EVA = RunSettings(user="Eva Ødegård", tenant="north")


def calling(tool, **arguments):
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "c1"}])


@asynccontextmanager
async def opened(path, place, key):
    """A process that opens the storage anew."""
    async with open_storage(place, key=key) as storage, open_runtime(path, storage=storage) as r:
        yield r


@pytest.mark.parametrize("key", [None, "a key of some length"])
async def test_what_the_host_was_told_a_step_of_another_process_knows(tmp_path, key):
    path, place = tmp_path / "team.yaml", tmp_path / "runs.db"
    script = {
        "think": SIMPLE,
        "direct_answer": [calling("remember", text="Her parcels go to Bergen."), "I will."],
        "step 1": [calling("recall", query="Where do the parcels go?"), "To Bergen."],
        "feedback": "---\nverdict: complete\n---\nIt went to Bergen.",
    }
    with OpenAIServer(script) as server:
        path.write_text(TEAM.replace("URL", server.base_url))
        async with opened(path, place, key) as r:
            first = await r.run("Send my parcels to Bergen from now on.", settings=EVA)
        async with opened(path, place, key) as r:
            second = await r.run(PLAN, settings=EVA)
            (fact,) = await r.facts(EVA.user, tenant=EVA.tenant)
            events = [each async for each in r.events(first.run_id)]
            assert await r.facts(EVA.user) == []
    assert (first.outcome, second.outcome) == ("answered", "completed")
    assert fact.run_id == first.run_id
    (told,) = [each for each in events if each.type == "fact_remembered"]
    assert (told.fact_id, told.text) == (fact.id, "Her parcels go to Bergen.")
    asked = [each for each in server.requests if each.call.node in ("direct_answer", "specialist")]
    for request in asked:
        tools = {each["function"]["name"]: each["function"] for each in request.body["tools"]}
        assert {*tools} == {"remember", "recall", "forget"}
        assert [*tools["remember"]["parameters"]["properties"]] == ["text"]
    (recalled,) = [m for m in asked[-1].messages if isinstance(m, ToolMessage)]
    (section,) = sections_of(recalled.text)
    assert section.text.endswith("| Her parcels go to Bergen.")
    written = b"".join(each.read_bytes() for each in tmp_path.glob("runs.db*") if each.is_file())
    assert (b"Bergen" in written) == (key is None)
    assert json.dumps(EVA.user).encode() not in written or key is None


def test_a_wrong_word_in_a_team_file_is_told_with_its_place(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text(TEAM.replace("true}", "perhaps}").replace("URL", "http://127.0.0.1:1"))
    with pytest.raises(TeamFileError) as caught:
        read_team_file(path, {})
    assert [(each.line, each.field) for each in caught.value.mistakes] == [
        (1, "host.remembers"),
        (3, "specialists[0].remembers"),
    ]
