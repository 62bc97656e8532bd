"""Plans that come from outside: step options stay within the team's, and a model's plan is one."""

from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from replan import Host, Limits, MemoryOptions, RAGOptions, Specialist, Team
from replan.knowledge import SearchResponse
from replan.testing import ScriptedModel, always
from served import OWNER, rested, served

DONE = always("---\nverdict: complete\n---\nDone.")
THINK = "---\ncomplexity: complex\n---\n- [ ] 1. Look @look\n"


class Bank:
    def __init__(self):
        self.paid = []

    def pay(self, context):
        self.paid.append(context.attempt)
        raise ConnectionError("no receipt came back")


class Prices:
    def search(self, request):
        return SearchResponse(chunks=[{"content": "one", "source": "p", "score": 0.9}])


def team(bank, **settings):
    members = [
        Specialist("pay", "Pays.", run=bank.pay, effects="unsafe"),
        Specialist("look", "Looks.", run=lambda context: "seen", effects="pure"),
    ]
    given = {
        "limits": Limits(step_timeout=60, step_retries=1),
        "memory": MemoryOptions(mode="window", history_limit=2),
        "knowledge": Prices(),
        "rag": RAGOptions(top_k=3, timeout_seconds=5, min_score=0.1),
        **settings,
    }
    model = ScriptedModel({"think": always(THINK), "feedback": DONE, "final_answer": DONE})
    return Team(host=Host(model=model), specialists=members, **given)


def look(options):
    lines = "".join(f"    {line}\n" for line in ["```yaml", *options, "```"])
    return f"- [ ] 1. Look @look\n\n{lines}"


LOOSER = {
    "timeout": "- [ ] 1. Look @look (timeout 61s)\n",
    "retries": "- [ ] 1. Look @Look (retries 2)\n",
    "retries of unsafe work": "- [ ] 1. Pay @pay (retries 1)\n",
    "memory_mode": look(["memory_mode: full"]),
    "memory_history_limit": look(["memory_history_limit: 3"]),
    "memory_history_limit of all": look(["memory_history_limit: 0"]),
    "memory_summary_model_id": look(["memory_summary_model_id: dear"]),
    "rag_mode": look(["rag_mode: map_reduce"]),
    "rag_top_k": look(["rag_top_k: 50"]),
    "rag_min_score": look(["rag_min_score: 0.05"]),
    "rag_use_summary": look(["rag_use_summary: true"]),
    "rag_map_max_chunks": look(["rag_map_max_chunks: 6"]),
    "rag_timeout_seconds": look(["rag_timeout_seconds: 6"]),
}
TIGHTER = [
    "- [ ] 1. Look @look (timeout 5s; retries 0)\n",
    look(["memory_history_limit: 1", "rag_top_k: 2", "rag_min_score: 0.5", "rag_mode: none"]),
    look(["rag_timeout_seconds: 1", "rag_mode: stuff", "memory_mode: window"]),
]


async def test_a_step_of_a_plan_from_outside_asks_for_no_more_than_the_team_has():
    bank = Bank()
    async with served(team(bank)) as client:
        for name, plan in LOOSER.items():
            refused = await client.post("/runs", json={"plan": plan, "run_id": "one"})
            assert refused.status_code == 422, name
            (mistake,) = refused.json()["mistakes"]
            assert (mistake["field"], mistake["code"]) == (f"plan.1.{name.split()[0]}", "looser")
            assert mistake["line"] == (4 if "_" in name else 1)
            assert mistake["fix"].startswith("Leave it out")
        assert (await client.get("/runs")).json()["runs"] == []
        for plan in TIGHTER:
            began = await client.post("/runs", json={"plan": plan})
            assert (await rested(client, began.json()["run_id"]))["outcome"] == "completed"
    assert bank.paid == []


async def test_what_a_team_opens_a_plan_from_outside_may_loosen():
    opened = ["step_timeout", "step_retries", "memory", "rag"]
    plans = [plan for name, plan in LOOSER.items() if name != "memory_summary_model_id"]
    async with served(team(Bank(), client_overrides=opened)) as client:
        for plan in plans:
            began = await client.post("/runs", json={"plan": plan})
            assert began.status_code == 201
            await rested(client, began.json()["run_id"])


@pytest.mark.parametrize("name", ["timeout", "retries", "rag_top_k", "memory_mode"])
async def test_a_plan_that_is_changed_at_its_approval_loosens_nothing(name):
    async with served(team(Bank(), approval="plan")) as client:
        began = await client.post("/runs", json={"task": "Look."})
        run = await rested(client, began.json()["run_id"])
        edit = {"action": "edit", "plan": LOOSER[name]}
        bound = {"answer": LOOSER[name], "fingerprint": run["pending_questions"][0]["fingerprint"]}
        for decision in (edit, LOOSER[name], bound):
            path, body = f"/runs/{run['run_id']}/answers", {"answers": {"plan": decision}}
            refused = await client.post(path, json=body)
            assert (refused.status_code, refused.json()["mistakes"][0]["code"]) == (422, "looser")
        assert (await rested(client, run["run_id"]))["outcome"] == "waiting"


@asynccontextmanager
async def tool_of(client):
    """The tool of a team, as a model calls it."""
    headers, base = {"Authorization": f"Bearer {OWNER}"}, str(client.base_url).rstrip("/")
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http)) as mcp,
    ):

        async def called(plan):
            return await mcp.call_tool("house", {"task": "Do it.", "plan": plan})

        yield called


async def test_a_plan_that_a_model_hands_in_is_approved_as_a_models():
    bank = Bank()
    async with served(team(bank, approval="plan")) as client, tool_of(client) as called:
        waits = await called("- [ ] 1. Pay @pay\n")
        run = waits.structured_content["run_id"]
        assert (waits.structured_content["outcome"], bank.paid) == ("waiting", [])
        assert "- [ ] 1. Pay @pay" in waits.content[0].text
        await client.post(f"/runs/{run}/answers", json={"answers": {"plan": "approve"}})
        await rested(client, run)
        began = await client.post("/runs", json={"plan": "- [ ] 1. Pay @pay\n"})
        assert (await rested(client, began.json()["run_id"]))["outcome"] != "waiting"
    assert bank.paid == [1, 1]


async def test_what_a_model_may_not_give_counts_in_no_plan_that_it_hands_in():
    bank = Bank()
    async with served(team(bank)) as client, tool_of(client) as called:
        told = await called("- [ ] 1. Pay @Pay (retries 4)\n")
        assert bank.paid == [1]
        assert "'retries 4' does not count" in told.structured_content["warnings"][0]
        told = await called("- [ ] 1. Look @look (timeout 1000s)\n")
        run = (await client.get(f"/runs/{told.structured_content['run_id']}")).json()
        assert "timeout 60s" in run["plan"]
        told = await called("- [x] 1. Pay @pay\n\n  > Paid, receipt 7.\n")
        assert (bank.paid, "receipt 7" in told.content[0].text) == ([1, 1], False)
        for plan in (
            look(["rag_mode: map_reduce"]),
            look(["rag_unknown: 3"]),
            LOOSER["retries"],
        ):
            refused = await called(plan)
            assert (refused.is_error, "in the plan" in refused.content[0].text) == (True, True)
