"""What a client of a server asks for only tightens what the team has."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import Host, Limits, MultiAgentConfig, RunSettings, Specialist, build_graph
from replan.state.tightening import tightened
from replan.testing import ScriptedModel

PLAN = {"plan": "- [ ] 1. Look @a\n"}
DONE = "---\nverdict: complete\n---\nDone."
LOOSE = RunSettings(approval="never", limits=Limits(max_model_calls=10**9, max_rounds=2))


async def settled(*, served):
    with ScriptedModel({"feedback": DONE}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
        limits = Limits(max_model_calls=7)
        host = Host(tool_calling_model=model)
        config = MultiAgentConfig(host=host, specialists=team, limits=limits, approval="revisions")
        return await build_graph(config, served=served).ainvoke(PLAN, context=LOOSE)


async def test_a_client_of_a_server_loosens_nothing_and_is_told():
    state = await settled(served=True)
    assert state["settings"].approval == "revisions"
    assert state["settings"].limits == Limits(max_model_calls=7, max_rounds=2)
    assert state["warnings"] == [
        "approval='never' is looser than the team's, so approval='revisions' holds.",
        "max_model_calls=1000000000 is looser than the team's, so max_model_calls=7 holds.",
    ]


@pytest.mark.parametrize(("served", "tries"), [(True, 1), (False, 3)])
async def test_a_clients_edit_of_the_state_loosens_nothing(served, tries):
    made = []

    def work(context):
        made.append(context.attempt)
        raise ConnectionError("gone")

    thread = {"configurable": {"thread_id": "t"}}
    with ScriptedModel({"feedback": DONE}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=work)]
        host, limits = Host(tool_calling_model=model), Limits(step_retries=0)
        config = MultiAgentConfig(host=host, specialists=team, limits=limits)
        graph = build_graph(config, checkpointer=InMemorySaver(), served=served)
        await graph.ainvoke(PLAN, thread, interrupt_before=["plan_execution"])
        edited = {"settings": RunSettings(limits=Limits(step_retries=2))}
        await graph.aupdate_state(thread, edited)
        await graph.ainvoke(None, thread)
    assert len(made) == tries


async def test_code_may_loosen_what_the_team_has():
    state = await settled(served=False)
    assert state["settings"].approval == "never"
    assert state["settings"].limits.max_model_calls == 10**9
    assert state["warnings"] == []


@pytest.mark.parametrize(
    ("team", "asked", "holds"),
    [
        ({"approval": "plan"}, {"approval": "revisions"}, {"approval": "always"}),
        ({"approval": "always"}, {"approval": "plan"}, {"approval": "always"}),
        ({"on_doubt": "fail"}, {"on_doubt": "ask"}, {"on_doubt": "fail"}),
        ({"on_doubt": "ask"}, {"on_doubt": "fail"}, {"on_doubt": "fail"}),
        ({"round_scope": "ready"}, {"round_scope": "plan"}, {"round_scope": "ready"}),
        ({"allow_dynamic_update": False}, {"allow_dynamic_update": True}, {}),
        ({"limits": Limits(max_tokens=9)}, {"limits": Limits(max_tokens=None)}, {}),
        ({}, {"limits": Limits(max_tokens=5)}, {"limits": Limits(max_tokens=5)}),
    ],
)
def test_the_tighter_one_of_two_settings_holds(team, asked, holds):
    known = RunSettings(**team)
    taken = known.overridden_by(tightened(known, RunSettings(**asked)))
    assert taken == known.replace(**holds)
