"""A loop of tools that outgrows the model's window: older results become references."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from replan import Host, Specialist, Team, open_runtime, run
from replan.specialists.put_away import READ_RESULT
from replan.testing import ScriptedModel

PLAN = "- [ ] 1. Read all pages @reader\n"
WINDOW = 4_000  # tokens


def page(number: int) -> str:
    """Read a page."""
    return f"Page {number}. " + f"word{number} " * 700


def call(name, **args):
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}-{args}"}])


def reader(*replies, window=WINDOW, tools=(page,)):
    profile = {} if window is None else {"max_input_tokens": window}
    model = ScriptedModel({"specialist": [*replies]}, profile=profile)
    return model, Team(
        Host("offline"), [Specialist("reader", "Reads.", chat_model=model, tools=[*tools])]
    )


def results_in(request):
    return [each for each in request.messages if isinstance(each, ToolMessage)]


PAGES = [call("page", number=number) for number in (1, 2, 3)]


async def test_older_results_stand_as_references_and_the_newest_as_it_is():
    model, team = reader(*PAGES, "Read.")
    result = await run(team, {"plan": PLAN})
    assert result.outcome == "completed"
    first, _, newest = results_in(model.calls[-1])
    assert "was put away as result 1" in first.text
    assert newest.content == page(3)
    # A call and its answer stay together.
    for request in model.calls:
        asked = [
            c["id"] for m in request.messages if isinstance(m, AIMessage) for c in m.tool_calls
        ]
        assert [each.tool_call_id for each in results_in(request)] == asked
    (warning,) = result.warnings
    assert "The tool results of step 1 would take most of the model's window" in warning


async def test_the_model_reads_a_result_back_piece_by_piece():
    more = [call(READ_RESULT, result="1"), call(READ_RESULT, result="1", offset=2_000)]
    model, team = reader(*PAGES, *more, call(READ_RESULT, result="9"), "Read.")
    await run(team, {"plan": PLAN})
    read = [results_in(request)[-1].text for request in model.calls[-3:]]
    text = page(1)
    first, _, rest = read[0].partition("\n")
    assert first == f"[Characters 0 to 2000 of {len(text)}. Go on with offset 2000.]"
    assert rest == text[:2_000]
    assert read[1].partition("\n")[2] == text[2_000:4_000]
    assert read[2].startswith("There is no result 9. Put away are: 1")
    # What was read makes room again, and has no number of its own.
    again = [each.text for each in results_in(model.calls[-1]) if each.name == READ_RESULT]
    assert again[0].startswith("[This was read, and put away again.")


@pytest.mark.parametrize("options", [{"window": None}, {"window": 1_000_000}])
async def test_a_loop_that_fits_or_whose_window_is_unknown_is_left_alone(options):
    model, team = reader(*PAGES, "Read.", **options)
    result = await run(team, {"plan": PLAN})
    assert [each.content for each in results_in(model.calls[-1])] == [page(1), page(2), page(3)]
    assert result.warnings == ()


async def test_a_tool_of_the_teams_own_of_this_name_stays_the_only_one():
    def read_result(number: int) -> str:
        """Read a result of a measurement."""
        return page(number)

    calls = [call(READ_RESULT, number=number) for number in (1, 2, 3)]
    model, team = reader(*calls, "Read.", tools=(read_result,))
    await run(team, {"plan": PLAN})
    assert [each.content for each in results_in(model.calls[-1])] == [page(1), page(2), page(3)]


async def test_a_run_that_is_resumed_sees_the_same_references(tmp_path):
    model, team = reader(*PAGES, OSError("gone"), "Read.")
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        result = await runtime.run({"plan": PLAN})
    assert result.outcome == "completed"
    assert [each.text for each in results_in(model.calls[-1])] == [
        each.text for each in results_in(model.calls[-2])
    ]


async def test_calls_of_one_id_keep_results_of_their_own():
    def numbered(number):
        asked = call("page", number=number)
        return asked.model_copy(update={"tool_calls": [{**asked.tool_calls[0], "id": "call_1"}]})

    again = call(READ_RESULT, result="2")
    model, team = reader(*map(numbered, (1, 2, 3, 4)), again, "Read.")
    await run(team, {"plan": PLAN})
    assert results_in(model.calls[-1])[-1].text.partition("\n")[2].startswith("Page 2.")
