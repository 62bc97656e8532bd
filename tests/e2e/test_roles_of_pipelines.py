"""The scaffold and the example of pipelines, with a model that takes one order of roles only."""

import importlib
import sys
from pathlib import Path

import pytest

from replan.cli.new import write_pipeline
from replan.models.providers.chat_models import LangChainModels
from replan.pipelines import run_pipeline
from replan.testing import OpenAIServer
from roles import check_requests, foreign, rows_of

ARTICLE = Path(__file__).parents[2] / "examples/article"


@pytest.fixture
def module(monkeypatch):
    """Imports a module of a folder, and forgets it and what it imported."""
    before = set(sys.modules)

    def imported(folder, name):
        monkeypatch.syspath_prepend(folder)
        return importlib.import_module(name)

    yield imported
    for name in sys.modules.keys() - before:
        if name.split(".")[0] in ("harbour", "notes", "writing") or name.startswith("article"):
            del sys.modules[name]


async def asked(agent, text):
    """What a server was asked while a pipeline did its work."""
    with OpenAIServer(
        lambda request: foreign(f"{request.call.phase}"), strict_roles=True
    ) as server:
        model = LangChainModels(base_url=server.base_url).chat_model("openai:m")
        response = await run_pipeline(agent, text, model=model)
        assert response.failure is None
    return server


@pytest.mark.parametrize("nested", [False, True])
async def test_the_scaffold_keeps_the_order(nested, module, tmp_path):
    write_pipeline("harbour", tmp_path, nested=nested)
    agent = module(tmp_path, "harbour.harbour_agent").HarbourAgent
    server = await asked(agent, foreign("request"))
    check_requests(server, "request", "draft_writing", *(["claim_check"] * nested))
    assert {rows_of(each) for each in server.requests} == {"su"}
    if nested:
        check = next(each for each in server.requests if each.call.phase == "claim_check")
        # It is asked about the draft, and does not continue it.
        assert check.messages[1].text.startswith("<conversation>\nassistant: §draft_writing§")


async def test_the_article_keeps_the_order_and_its_notes_are_no_instruction(module):
    agent = module(ARTICLE, "article_agent").ArticleAgent
    server = await asked(agent, "Write about returns.")
    check_requests(server, "outline_writing", "draft_writing")
    assert len(server.requests) > 4
    for request in server.requests:
        system, *others = request.messages
        assert "Returns" not in system.text
        assert "Returns" in others[0].text
        assert others[-1].type == "human"
