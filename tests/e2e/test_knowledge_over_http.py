"""A team file with a folder, a model over HTTP: the prompt has the passages, the answer cites."""

from replan import build_graph, run
from replan.team.team_file import read_team_file
from replan.testing import OpenAIServer

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. 礼品卡可以退款吗 @clerk\n"
TEAM = """\
host: openai:m
knowledge: docs
specialists:
  - {name: clerk, intended_use: Answers questions., chat_model: 'openai:m', rag: {top_k: 2}}
"""


async def test_planted_facts_in_two_languages_reach_the_model_and_the_answer_cites_them(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "zh.md").write_text("# 退款\n\n礼品卡不能退款。\n", encoding="utf-8")
    (tmp_path / "docs" / "en.md").write_text("# Hours\n\nShops open at nine.\n")
    (tmp_path / "team.yaml").write_text(TEAM)
    answer = "---\nverdict: complete\n---\n不能 [[zh.md:3]] [[en.md:3]]."
    script = {"think": PLAN, "step 1": "不能 [[zh.md:3]].", "feedback": answer}
    with OpenAIServer(script) as server:
        team = read_team_file(tmp_path / "team.yaml", {}).with_model(None, server.base_url)
        result = await run(build_graph(team.config, models=team.models), "问题")
        prompts = [str(request) for request in server.requests]
    assert ["3| 礼品卡不能退款。" in prompt for prompt in prompts] == [False, True, False]
    assert result.text == "不能 [[zh.md:3]].\n\n**Sources:**\n\n- zh.md:3 (退款)"
