"""A document that is handed in again, beside what its page shows: long results, its seal."""

from itertools import count

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    Host,
    Specialist,
    Team,
    build_graph,
    open_storage,
    run,
    stream,
)
from replan.plan import unsealed
from replan.plan.markdown.rendering import render_for_model
from replan.prompts.host import HostPrompts, build_thinking_prompt
from replan.state.conversation.conversation import Seen
from replan.testing import ScriptedModel, always
from scripts import COMPLETE

PLAN = """\
# Compare two policies

- [ ] 1. Find the EU policy @researcher
- [ ] 2. Find the US policy @researcher
- [ ] 3. Compare both @analyst (after 1, 2)
- [ ] 4. Ask the embassy @researcher (if 2 failed)
- [ ] 5. Write a page @analyst (after 3, 4)
- [ ] 6. Draw a map @researcher (after 1)
"""


class Crew:
    """Two specialists that count what they do, and a host that is content."""

    def __init__(self, *, feedback=COMPLETE):
        self.done = []
        self.inputs = {}
        self.model = ScriptedModel(
            {"feedback": feedback if isinstance(feedback, list) else always(feedback)}
        )

    def work(self, context):
        step = context.plan_step.id
        self.done.append(step)
        self.inputs[step] = dict(context.inputs)
        return f"text {step} of {len(self.done)}"

    def graph(self, **options):
        names = ("researcher", "analyst")
        team = [Specialist(name=name, intended_use="Works.", run=self.work) for name in names]
        kept = {name: options.pop(name, None) for name in ("checkpointer", "storage")}
        config = Team(host=Host(model=self.model), specialists=team, **options)
        return build_graph(config, **kept)

    async def run(self, plan, **options):
        self.done.clear()
        return (await run(self.graph(**options), {"plan": plan})).state


async def finished(team, plan=PLAN):
    state = await team.run(plan)
    assert state["outcome"] == "completed"
    return state["current_plan"].content


LONG = "head\n\n" + "`word` * and more\n" * 100 + "end"


class Novelists(Crew):
    """A team whose results are longer than what a document keeps of them."""

    def work(self, context):
        super().work(context)
        return f"{LONG} {context.plan_step.id}"


async def test_steps_that_run_again_get_whole_results_wherever_the_run_is_kept(tmp_path):
    team = Novelists()
    whole = {step: f"{LONG} {step}" for step in (1, 2)}
    numbers = count()

    def thread():
        return {"configurable": {"thread_id": f"t{next(numbers)}"}}

    async def again(text, storage, edit):
        team.inputs.clear()
        state = (
            await run(team.graph(storage=storage), {"plan": text.replace(*edit)}, config=thread())
        ).state
        assert sorted(team.inputs) == [3, 5]
        return state

    async with open_storage(tmp_path / "runs.db") as storage:
        first = (await run(team.graph(storage=storage), {"plan": PLAN}, config=thread())).state
        text = first["current_plan"].content
        # In a document of a document, too.
        for edit in (("Compare both", "Compare all"), ("Compare all", "Compare again")):
            state = await again(text, storage, edit)
            assert team.inputs[3] == whole
            assert set(state["current_specialist_results"]) == {"3/analyst", "5/analyst"}
            assert state["carried_results"]["1/researcher"].text == whole[1]
            assert LONG in team.model.calls[-1].messages[-1].text
            text = state["current_plan"].content
        # Where nothing is done, nothing is written.
        state = (await run(team.graph(storage=storage), {"plan": text}, config=thread())).state
        assert state["current_plan"].content == text
        # What a person writes in the place of a result counts.
        await again(text.replace("> head", "> my own head", 1), storage, ("again", "once more"))
        assert team.inputs[3][1].startswith("my own head")
        assert team.inputs[3][2] == whole[2]
    # StepQueue the document has to do.
    async with open_storage(":memory:") as storage:
        state = await again(text, storage, ("again", "at last"))
    assert state["carried_results"] == {}
    assert team.inputs[3][1].endswith("…")
    assert len(team.inputs[3][1]) <= 600


async def test_the_last_run_of_a_thread_hands_its_whole_results_on():
    team, thread = Novelists(), {"configurable": {"thread_id": "t"}}
    graph = team.graph(checkpointer=InMemorySaver())
    state = (await run(graph, {"plan": PLAN}, config=thread)).state
    for edit in (("Compare both", "Compare all"), ("Compare all", "Compare again")):
        text = state["current_plan"].content.replace(*edit)
        state = (await run(graph, {"plan": text}, config=thread)).state
        assert team.inputs[3] == {step: f"{LONG} {step}" for step in (1, 2)}


async def test_everything_but_marks_results_and_the_seal_stays_byte_for_byte():
    team = Crew()
    text = "<!-- mine -->\r\n\r\n* [ ] 1) First   @analyst\r\n\r\n## Notes\r\n\r\nkept"
    once = await finished(team, text)
    again = await finished(team, once.replace("First", "Second"))
    assert again.replace("text 1 of 1", "").replace("Second", "First").split("<!-- replan")[0] == (
        text.replace("[ ]", "[x]").replace("analyst\r\n", "analyst\r\n\r\n  > \r\n") + "\r\n"
    )


async def test_an_event_tells_what_runs_again_and_why_before_anything_runs():
    team = Crew()
    text = (await finished(team)).replace("Compare both", "Compare all")
    events = [event async for event in stream(team.graph(), {"plan": text})]
    told = [event for event in events if event.type == "steps_invalidated"]
    assert [list(map(str, event.reruns)) for event in told] == [["3 (edited)", "5 (after 3)"]]
    assert [event.type for event in events[:2]] == ["run_started", "steps_invalidated"]
    unedited = await finished(team)
    types = {event.type async for event in stream(team.graph(), {"plan": unedited})}
    assert "steps_invalidated" not in types


async def test_no_prompt_and_no_event_before_the_end_shows_the_seal():
    checks = "---\nverdict: continue\nupdate: More.\n---\n- [ ] 9. Check @analyst\n"
    team = Crew(feedback=[checks, COMPLETE])
    text = (await finished(Crew())).replace("Find the EU", "Find the new EU")
    events = [event async for event in stream(team.graph(), {"plan": text})]
    asked = "".join(message.text for call in team.model.calls for message in call.messages)
    assert "new EU" in asked
    assert "<!-- replan" not in asked
    documents = [e.markdown for e in events if e.type in ("plan_created", "plan_updated")]
    assert documents
    assert all(unsealed(document) == document for document in documents)


async def test_a_plan_that_was_left_open_is_shown_to_a_model_without_its_seal():
    plan = (await Crew().run(PLAN))["current_plan"]
    host = HostPrompts(team=(), merged_planning=True, merged_answer=True)
    seen = Seen([HumanMessage("And now?")])
    prompt = build_thinking_prompt(seen, {"previous_plan": render_for_model(plan)}, host)
    asked = "".join(message.text for message in prompt)
    assert "Find the EU policy" in asked
    assert "<!-- replan" not in asked


async def test_a_seal_that_a_model_writes_is_ignored():
    plan = (await finished(Crew())).replace("text", "lies")
    model = ScriptedModel(
        {"think": f"---\ncomplexity: complex\n---\n{plan}", "feedback": always(COMPLETE)}
    )
    team = Crew()
    team.model = model
    events = [event async for event in stream(team.graph(), "Compare.")]
    assert sorted(set(team.done)) == [1, 2, 3, 5, 6]
    (created,) = [event for event in events if event.type == "plan_created"]
    assert unsealed(created.markdown) == created.markdown
    assert "lies" not in created.markdown
