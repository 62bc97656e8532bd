"""All that a run told and a person may not expect stands in its state and its last event."""

from langgraph.checkpoint.memory import InMemorySaver

from replan import Host, Specialist, Team, build_graph, run, stream
from replan.testing import Reply, ScriptedModel, always

DONE = "---\nverdict: complete\n---\nThe answer."


def graph_of(script, checkpointer=None):
    team = [
        Specialist(name="payer", intended_use="Pays invoices.", run=lambda context: "paid"),
        Specialist(name="mailer", intended_use="Sends e-mail.", run=lambda context: "sent"),
    ]
    config = Team(host=Host(model=ScriptedModel(script)), specialists=team)
    return build_graph(config, checkpointer=checkpointer)


async def test_a_step_given_by_the_cards_and_text_that_looks_like_an_order_are_warnings():
    graph = graph_of({"feedback": DONE})
    plan = "- [ ] 1. Pay invoices\n- [ ] 2. Send (needs all of it) @mailer\n"
    state = (await run(graph, {"plan": plan})).state
    assert state["warnings"] == [
        (
            "In the plan, line 2: '(needs all of it)' looks like a dependency and was read "
            "as text; write (after 1, 2)."
        ),
        "Step 1 names nobody; by the cards it goes to @payer.",
    ]
    assert state["outcome"] == "completed"


async def test_a_reply_that_could_not_be_read_is_a_warning_with_what_was_done_instead():
    graph = graph_of({"think": always("complexity: maybe"), "direct_answer": always("Lima.")})
    events = [event async for event in stream(graph, "Which is the capital of Peru?")]
    last = events[-1]
    assert last.type == "task_completed"
    (warning,) = last.warnings
    assert warning.startswith("The reply of think could not be read, so this is done: ")


async def test_an_answer_that_is_not_whole_is_a_warning():
    cut = Reply("---\ncomplexity: simple\n---\nLima is the cap", finish_reason="length")
    state = (await run(graph_of({"think": cut}), "Which is the capital of Peru?")).state
    (warning,) = state["warnings"]
    assert warning.startswith("The answer is not whole: ")
    assert state["outcome"] == "partial"


async def test_the_next_run_of_a_thread_begins_without_warnings():
    graph = graph_of({"feedback": always(DONE)}, InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    first = (await run(graph, {"plan": "- [ ] 1. Pay invoices\n"}, config=thread)).state
    second = (await run(graph, {"plan": "- [ ] 1. Pay invoices @payer\n"}, config=thread)).state
    assert len(first["warnings"]) == 1
    assert second["warnings"] == []
