"""What the spans say of events."""

from replan.events import AnswerReceived, ToolInvoked
from replan.traces import conventions

TOOL = {"run_id": "r", "call": "0.0", "node": "n", "tool": "t", "arguments": {}, "effects": "pure"}


def test_a_tools_call_has_the_id_that_its_model_gave_it_beside_that_of_replan():
    told = conventions.of_tool_call(ToolInvoked(**TOOL, tool_call_id="call_7"))
    assert (told["gen_ai.tool.call.id"], told["replan.call"]) == ("call_7", "0.0")
    assert "gen_ai.tool.call.id" not in conventions.of_tool_call(ToolInvoked(**TOOL))


def test_an_answer_is_marked_with_who_gave_it_and_without_its_text():
    given = {"key": "plan", "kind": "plan", "action": "rejected", "by": "eva", "text": "dear"}
    mark = conventions.span_event(AnswerReceived(run_id="r", **given), content=True)
    assert mark == {"replan.action": "rejected", "replan.kind": "plan", "replan.by": "eva"}
