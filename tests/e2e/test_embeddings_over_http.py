"""A team file with a folder and embeddings: passages by meaning, charged under the model's name."""

import pytest

from replan import TeamFileError, build_graph, run, stream
from replan.team.team_file import read_team_file
from replan.testing import OpenAIServer

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. Who harvests the honey? @clerk\n"
ANSWER = "---\nverdict: complete\n---\nNobody [[bees.md:3]]."
SCRIPT = {"think": PLAN, "step 1": "Nobody [[bees.md:3]].", "feedback": ANSWER}
TEAM = """\
host: openai:m
knowledge: {folder: docs, embeddings: 'openai:tiny-embedding'}
prices:
  openai:m: {input: 1, output: 1}
  openai:tiny-embedding: {input: 2000000, output: 0}
specialists:
  - {name: clerk, intended_use: Answers questions., chat_model: 'openai:m', rag: {top_k: 1}}
"""


@pytest.fixture
def team(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "bees.md").write_text("# Bees\n\nHoney is harvested in July.\n")
    path = tmp_path / "team.yaml"
    path.write_text(TEAM)
    return path


def graph_of(path, base_url):
    team = read_team_file(path, {}).with_model(None, base_url)
    return build_graph(team.config, models=team.models)


async def test_what_embeddings_take_is_counted_priced_and_told(team):
    with OpenAIServer(SCRIPT) as server:
        graph = graph_of(team, server.base_url)
        events = [event async for event in stream(graph, "Look")]
        assert server.embedded == (
            "Look",
            "Bees\nHoney is harvested in July.",
            "Who harvests the honey?",
        )
    told = [each for each in events if each.type == "model_invoked"]
    assert [each.model for each in told].count("tiny-embedding") == 3
    (step,) = [e for e in events if e.type == "knowledge_retrieved" and e.step_id == 1]
    assert (step.skipped, [each.source for each in step.sources]) == ((), ["bees.md"])
    usage = events[-1].usage
    # Two words of the host's question, six of the passage, four of the step's.
    embedded = [e for e in events if e.type == "model_completed" and e.model == "tiny-embedding"]
    assert [each.input_tokens for each in embedded] == [1, 6, 4]
    assert [each.cost for each in embedded] == [2.0, 12.0, 8.0]
    assert usage.calls == 6
    assert usage.cost == pytest.approx(22, abs=0.1)


async def test_a_server_that_is_gone_leaves_the_words_and_is_told(team, tmp_path):
    with OpenAIServer({}) as gone:
        address = gone.base_url
    text = TEAM + f"models:\n  meaning: {{model: 'openai:e', base_url: '{address}'}}\n"
    team.write_text(text.replace("'openai:tiny-embedding'}", "meaning}"))
    with OpenAIServer(SCRIPT) as server:
        graph = graph_of(team, server.base_url)
        events = [event async for event in stream(graph, "Look")]
    (step,) = [e for e in events if e.type == "knowledge_retrieved" and e.step_id == 1]
    assert [each.source for each in step.sources] == ["bees.md"]
    assert "e failed, so passages are found by their words alone" in step.skipped[0]


async def test_a_limit_of_calls_holds_for_embeddings_too(team):
    team.write_text(TEAM + "limits: {max_model_calls: 3}\n")
    with OpenAIServer(lambda request: PLAN) as server:
        result = await run(graph_of(team, server.base_url), "Look")
        assert len(server.embedded) + len(server.requests) <= 3
    assert result.usage.calls <= 3


def test_a_limit_of_money_needs_the_price_of_embeddings(team):
    text = TEAM.replace("  openai:tiny-embedding: {input: 2000000, output: 0}\n", "")
    team.write_text(text + "limits: {max_cost: 1}\n")
    with pytest.raises(Exception, match=r"knowledge.embeddings: this model has no price"):
        graph_of(team, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("knowledge", "told"),
    [
        ("{folder: docs, embedding: x}", "there is no such field"),
        ("{embeddings: openai:x}", "the folder is missing"),
        ("{folder: docs, embeddings: 3}", "this must be text"),
        ("{folder: none, embeddings: openai:x}", "there is no folder"),
    ],
)
def test_what_is_wrong_with_the_field_is_told_with_its_place(team, knowledge, told):
    lines = TEAM.splitlines()
    lines[1] = f"knowledge: {knowledge}"
    team.write_text("\n".join(lines))
    with pytest.raises(TeamFileError, match=told) as error:
        read_team_file(team, {})
    assert error.value.mistakes[0].line == 2


def test_a_name_without_a_server_is_told_with_its_field(team):
    team.write_text(TEAM.replace("openai:tiny-embedding", "tiny"))
    with pytest.raises(Exception, match=r"knowledge.embeddings: it names no provider"):
        graph_of(team, None)
