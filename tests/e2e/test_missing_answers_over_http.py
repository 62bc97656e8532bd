"""Runs whose host gives no answer at the end, over real HTTP: none of them looks like a success."""

import json

import pytest
from typer.testing import CliRunner

from replan import Host, Specialist, Team, run, stream
from replan.assembly.team_services import services_of
from replan.cli.main import app
from replan.graph.build import host_graph
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Reply, always

PLAN = "- [ ] 1. Read A @reader\n- [ ] 2. Read B @reader\n"
TOO_LONG = "This model's maximum context length is 4096 tokens."


def refused(status, message="", code=""):
    return Reply(fault=HttpFault(status, message=message, code=code))


LASTING = {
    "the context": refused(400, TOO_LONG, "context_length_exceeded"),
    "the context in other words": refused(400, "the request exceeds the available context size"),
    "the key": refused(401, "Incorrect API key provided", "invalid_api_key"),
    "the balance": refused(402, "Insufficient Balance"),
    "the quota": refused(429, "You exceeded your current quota", "insufficient_quota"),
}


def graph_on(url, **work):
    work = work or {"run": lambda context: f"the text of {context.plan_step.description}"}
    specialists = [Specialist(name="reader", intended_use="Reads.", **work)]
    team = Team(host=Host(model="openai:m"), specialists=specialists)
    return host_graph(services_of(team, LangChainModels(base_url=url))).compile()


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("name", LASTING)
async def test_a_host_that_gives_no_answer_makes_a_partial_run_and_says_so(name, heard):
    script = {"feedback": always(LASTING[name]), "final_answer": always(LASTING[name])}
    with OpenAIServer(script) as server:
        graph = graph_on(server.base_url)
        if heard:
            last = [event async for event in stream(graph, {"plan": PLAN})][-1]
            assert last.type == "task_completed"
            outcome, text, warnings = last.outcome, last.answer.text, last.warnings
        else:
            result = await run(graph, {"plan": PLAN})
            outcome, text, warnings = result.outcome, result.text, result.warnings
            assert result.limit_reached == "no_answer"
        calls = server.calls
    assert outcome == "partial"
    assert text == "## 1. Read A\n\nthe text of Read A\n\n## 2. Read B\n\nthe text of Read B"
    assert [each for each in warnings if each.startswith("The host's model gave no judgement")]
    (said,) = [each for each in warnings if each.startswith("The host's model gave no answer")]
    assert "so the results are shown: " in said
    # What cannot pass is asked once, a prompt that is too long once more. A stream that is refused
    # with 400 may be one that is not known, so the whole reply is asked for, too.
    tries = (4 if heard else 2) if "context" in name else 1
    assert calls == {"feedback": tries, "final_answer": tries}


async def test_a_run_that_fails_as_a_whole_stays_failed_without_an_answer():
    def fails(context):
        raise LookupError("no such file")

    script = {"feedback": always(LASTING["the key"]), "final_answer": always(LASTING["the key"])}
    with OpenAIServer(script) as server:
        result = await run(graph_on(server.base_url, run=fails), {"plan": "- [ ] 1. Read @reader"})
    assert (result.outcome, result.limit_reached) == ("failed", "no_answer")


async def test_an_empty_answer_is_none():
    script = {"feedback": "---\nverdict: complete\n---\n", "final_answer": ""}
    with OpenAIServer(script) as server:
        result = await run(graph_on(server.base_url), {"plan": PLAN})
    assert (result.outcome, result.limit_reached) == ("partial", "no_answer")
    (warning,) = result.warnings
    assert warning.startswith("The host's model gave no answer, so the results are shown: ")
    assert warning.endswith(": the model returned no answer.")


async def test_a_judgement_that_fails_before_an_answer_is_a_warning():
    script = {"feedback": LASTING["the key"], "final_answer": "Both are read."}
    with OpenAIServer(script) as server:
        result = await run(graph_on(server.base_url), {"plan": PLAN})
    assert (result.outcome, result.text) == ("completed", "Both are read.")
    (said,) = result.warnings
    assert said.startswith("The host's model gave no judgement, so the status of the steps decided")
    assert "base URL" not in said


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("node", ["feedback", "final_answer"])
async def test_a_prompt_that_is_too_long_is_sent_once_more_with_shorter_results(node, heard):
    text, window = "x" * 11_000, 15_000

    def reply(request):
        said = sum(len(str(message.content)) for message in request.messages)
        if request.call.node == node and said > window:
            return LASTING["the context"]
        if request.call.node == "feedback":
            body = "" if node == "final_answer" else "The answer."
            return f"---\nverdict: complete\n---\n{body}"
        return "The answer."

    with OpenAIServer(reply) as server:
        graph = graph_on(server.base_url, run=lambda context: text)
        if heard:
            last = [event async for event in stream(graph, {"plan": PLAN})][-1]
        else:
            last = await run(graph, {"plan": PLAN})
        asked = [request for request in server.requests if request.call.node == node]
    assert last.outcome == "completed"
    shorter, unread = last.warnings
    assert shorter.startswith(f"The prompt of {node} was too long for the model, so it was sent ")
    assert unread.startswith("The answer was made with ")
    assert "of the result of steps 1, 2: there was no room for more." in unread
    assert len(asked) == (3 if heard else 2)


def test_the_terminal_ends_with_a_code_and_shows_why_there_is_no_answer(tmp_path):
    (tmp_path / "team.yaml").write_text(
        "host: {model: openai:m}\n"
        "specialists:\n- {name: reader, intended_use: Reads., chat_model: openai:m}\n"
    )
    (tmp_path / "plan.md").write_text(PLAN)
    spent = always(LASTING["the quota"])
    script = {"feedback": spent, "final_answer": spent, "specialist": always("Read.")}
    with OpenAIServer(script) as server:
        environment = {"XDG_DATA_HOME": str(tmp_path), "OPENAI_BASE_URL": server.base_url}

        def replan(*words):
            return CliRunner().invoke(app, [*map(str, words)], env=environment)

        ran = replan("run", tmp_path / "plan.md", "--team", tmp_path / "team.yaml")
        (listed,) = map(json.loads, replan("runs", "--json").stdout.splitlines())
        shown = replan("show", listed["run_id"])
        told = json.loads(replan("show", listed["run_id"], "--json").stdout)
        resumed = replan("resume", listed["run_id"])
    assert (ran.exit_code, resumed.exit_code) == (1, 1)
    said = "warning: The host's model gave no answer, so the results are shown: "
    assert [line for line in ran.stdout.splitlines() if line.startswith(said)]
    assert "why: the host's model gave no answer: " in " ".join(shown.stdout.split())
    assert (told["outcome"], told["limit_reached"]) == ("partial", "no_answer")
