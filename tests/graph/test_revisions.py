"""How plans are revised, and how a run ends, beside what their pages show."""

from replan import Host, Specialist, Team, ask_user, build_graph, run, stream
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE, given

PLAN = "- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)\n"
CHANGE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: More.\n---\n"


def graph_of(replies, work=lambda context: "Done.", **options):
    team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
    return build_graph(Team(Host(ScriptedModel(replies)), team, **options))


async def test_a_model_that_is_down_at_the_end_does_not_cost_the_results():
    class DownError(Exception):
        status_code = 400

    down = [always(DownError("gone"))]
    graph = graph_of({"feedback": down, "final_answer": down}, lambda c: f"text {c.plan_step.id}")
    state = (await run(graph, given(PLAN))).state
    assert (state["outcome"], state["limit_reached"]) == ("partial", "no_answer")
    assert "text 1" in state["final_answer"].text
    assert "text 2" in state["final_answer"].text


async def test_a_round_in_which_only_another_step_leads_tells_of_no_new_plan():
    def work(context):
        return ask_user("Which?") if context.plan_step.id == 2 else "Done."

    graph = graph_of({}, work, round_scope="ready")
    events = [event async for event in stream(graph, given(PLAN))]
    plans = [event.plan for event in events if event.type == "plan_updated"]
    assert [plan.completed_steps for plan in plans] == [(1,)]


async def test_a_revision_that_is_too_large_for_a_model_is_asked_for_again_and_changes_nothing():
    huge = PLAN + "".join(f"- [ ] {n}. More of it @a\n" for n in range(3, 6_000))
    # In one piece each: a word at a time it would take as long as all other tests here.
    judged, revised = (Reply(text, chunks=(text,)) for text in (CHANGE + huge, huge))
    graph = graph_of({"feedback": [judged, COMPLETE], "plan_update": [revised, revised]})
    state = (await run(graph, given(PLAN))).state
    assert "items and headings; at most 5,000 are read" in state["unreadable_replies"][0].problem
    assert len(state["current_plan"].steps) == 2
