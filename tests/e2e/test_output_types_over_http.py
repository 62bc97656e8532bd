"""Values instead of texts: a team file whose types stand beside it, over real HTTP and storage."""

import sys

import pytest

from replan import open_runtime
from replan.testing import OpenAIServer

TEAM = """\
host:
  model: openai:m
  output_type: prices_of_this_test:Total
specialists:
  - name: buyer
    intended_use: Knows prices.
    chat_model: openai:m
    output_type: prices_of_this_test:Price
"""
TYPES = """\
from pydantic import BaseModel


class Price(BaseModel):
    item: str
    cents: int


class Total(BaseModel):
    cents: int
    prices: list[Price]
"""
PLAN = "- [ ] 1. A pen @buyer\n- [ ] 2. Ink @buyer\n"
SCRIPT = {
    "step 1": ["A pen is 1.20.", '{"item": "pen", "cents": 120}'],
    "step 2": 'It is:\n\n```json\n{"item": "ink", "cents": 80}\n```',
    "feedback": "---\nverdict: complete\n---\nTwo euros in all.",
    "final_answer": '{"cents": 200, "prices": [{"item": "pen", "cents": 120}]}',
}


@pytest.fixture
def team_file(tmp_path, monkeypatch):
    (tmp_path / "prices_of_this_test.py").write_text(TYPES)
    (tmp_path / "team.yaml").write_text(TEAM)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-a-test")
    yield tmp_path / "team.yaml"
    sys.modules.pop("prices_of_this_test", None)


async def test_values_of_a_run_are_kept_and_come_back_of_their_types(
    team_file, tmp_path, monkeypatch
):
    storage = tmp_path / "runs.db"
    with OpenAIServer(SCRIPT, strict_roles=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        async with open_runtime(team_file, storage=storage) as runtime:
            result = await runtime.run({"messages": [("user", "Add up.")], "plan": PLAN})
        assert sum(server.calls.values()) == 5
    assert result.outcome == "completed"
    assert result.output.cents == 200
    assert type(result.output.prices[0]) is type(result.results[1].output)
    assert (result.results[1].output.item, result.results[2].output.cents) == ("pen", 80)
    assert result.usage.calls == 5
    async with open_runtime(team_file, storage=storage) as runtime:
        again = await runtime.resume(result.run_id)
    assert again.output == result.output
    assert again.results[2].output == result.results[2].output
