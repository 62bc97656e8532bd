"""What a client of a server asks for only tightens what the team has."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from replan import (
    ConfigurationError,
    Host,
    Limits,
    PlanDocumentError,
    RunSettings,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
)
from replan.plan import parse_plan_from_markdown
from replan.state.enhanced import EnhancedState
from replan.state.tightening import CAN_BE_OPENED, tightened
from replan.state.usage import Usage
from replan.testing import ScriptedModel
from scripts import DONE, THREAD

PLAN = {"plan": "- [ ] 1. Look @a\n"}
LOOSE = RunSettings(approval="never", limits=Limits(max_model_calls=10**9, max_rounds=2))


async def settled(*, served):
    with ScriptedModel({"feedback": DONE}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
        limits = Limits(max_model_calls=7)
        host = Host(model=model)
        config = Team(host=host, specialists=team, limits=limits, approval="revisions")
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

    with ScriptedModel({"feedback": DONE}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=work)]
        host, limits = Host(model=model), Limits(step_retries=0)
        config = Team(host=host, specialists=team, limits=limits)
        graph = build_graph(config, checkpointer=InMemorySaver(), served=served)
        await graph.ainvoke(PLAN, THREAD, interrupt_before=["plan_execution"])
        edited = {"settings": RunSettings(limits=Limits(step_retries=2))}
        await graph.aupdate_state(THREAD, edited)
        await graph.ainvoke(None, THREAD)
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


def served(model, *, approval="never", work=None, **options):
    team = [Specialist(name="a", intended_use="Works.", run=work or (lambda context: "done"))]
    config = Team(
        host=Host(model=model),
        specialists=team,
        approval=approval,
        limits=Limits(max_model_calls=7),
        **options,
    )
    return build_graph(config, checkpointer=InMemorySaver(), served=True)


async def test_a_client_may_loosen_what_its_team_has_opened():
    with ScriptedModel({"feedback": DONE}) as model:
        graph = served(model, approval="revisions", client_overrides=["max_model_calls"])
        state = await graph.ainvoke(PLAN, THREAD, context=LOOSE)
    assert state["settings"].approval == "revisions"
    assert state["settings"].limits.max_model_calls == 10**9
    assert state["warnings"] == [
        "approval='never' is looser than the team's, so approval='revisions' holds."
    ]


async def test_a_client_that_goes_on_with_a_run_loosens_nothing_and_is_told_once():
    with ScriptedModel({"feedback": DONE}) as model:
        graph = served(model, approval="revisions")
        await graph.ainvoke(PLAN, THREAD, interrupt_before=["plan_execution"])
        await graph.aupdate_state(THREAD, {"settings": RunSettings(limits=Limits(max_tokens=9))})
        await graph.aupdate_state(THREAD, {"settings": LOOSE})
        state = await graph.ainvoke(None, THREAD, context=LOOSE)
    assert state["settings"].limits.max_model_calls == 7
    assert state["warnings"] == [
        "approval='never' is looser than the team's, so approval='revisions' holds.",
        "max_model_calls=1000000000 is looser than the team's, so max_model_calls=7 holds.",
    ]


@pytest.mark.parametrize(
    ("values", "as_node"),
    [
        ({"approval": None}, "plan_approval"),
        ({"approval": None}, "plan_creation"),
        ({"messages": []}, "plan_approval"),
        ({"usage": Usage()}, None),
        ({"max_rounds": 10**6}, None),
        ({"decision": {"action": "approve"}}, None),
        ({"current_specialist_results": {"1/a": SpecialistResult()}}, None),
        ({"questions": {}}, None),
    ],
)
async def test_a_client_edits_no_state_that_is_not_its_own(values, as_node):
    with ScriptedModel({}) as model:
        graph = served(model, approval="always")
        await graph.ainvoke(PLAN, THREAD)
        before = await graph.aget_state(THREAD)
        with pytest.raises(InvalidUpdateError, match="A client may not"):
            await graph.aupdate_state(THREAD, values, as_node)
        if as_node is None:
            with pytest.raises(InvalidUpdateError, match="A client may not"):
                await graph.ainvoke(Command(update=values), THREAD)
        assert (await graph.aget_state(THREAD)).values == before.values


async def test_a_client_says_not_where_a_run_goes_on():
    ran = []
    with ScriptedModel({}) as model:
        graph = served(model, approval="always", work=ran.append)
        await graph.ainvoke(PLAN, THREAD)
        with pytest.raises(InvalidUpdateError, match="goto"):
            await graph.ainvoke(Command(goto="plan_execution"), THREAD)
    assert ran == []


async def test_a_key_of_the_state_can_be_opened():
    with ScriptedModel({"feedback": DONE}) as model:
        graph = served(model, client_overrides=["current_specialist_results"])
        await graph.ainvoke(PLAN, THREAD)
        await graph.aupdate_state(THREAD, {"current_specialist_results": {}})


@pytest.mark.parametrize("opened", [["max_second"], "max_seconds", ["settings"]])
def test_what_cannot_be_opened_is_refused(opened):
    with pytest.raises(ConfigurationError, match="client_overrides"):
        served(ScriptedModel({}), client_overrides=opened)


def test_what_can_be_opened_are_settings_limits_and_keys_of_the_state():
    known = {*RunSettings.model_fields, *Limits.model_fields, *EnhancedState.__annotations__}
    assert known > CAN_BE_OPENED


async def test_a_plan_of_a_client_loosens_nothing_at_any_door():
    loose = "- [ ] 1. Look @a (timeout 301s)\n- [ ] 2. Look @a (retries 3)\n"
    thought = "---\ncomplexity: complex\n---\n- [ ] 1. Look @a\n"
    with ScriptedModel({"think": thought}) as model:
        graph = served(model, approval="plan")
        with pytest.raises(PlanDocumentError, match=r"timeout 301s[^$]*retries 3"):
            await graph.ainvoke({"plan": loose}, THREAD)
        await graph.ainvoke({"messages": [("user", "Look.")]}, THREAD)
        before = (await graph.aget_state(THREAD)).values["current_plan"]
        for edited in (
            {"content": loose},
            before.replace(steps=(before.step(1).replace(timeout=301),)),
        ):
            with pytest.raises(InvalidUpdateError, match="timeout 301s"):
                await graph.aupdate_state(THREAD, {"current_plan": edited})
        edit = {"plan": {"action": "edit", "plan": loose}}
        asked = await graph.ainvoke(Command(resume=edit), THREAD)
        assert "timeout 301s" in asked["__interrupt__"][0].value["problem"]
        assert (await graph.aget_state(THREAD)).values["current_plan"] == before


ASKS_FIRST = "- [ ] 1. Look @a\n- [ ] 2. Send it @a (after 1; ask first)\n"


@pytest.mark.parametrize(
    "plan",
    [
        "- [ ] 1. Look @a\n- [ ] 2. Send it @a (after 1)\n",
        "- [ ] 1. Look @a\n- [ ] 2. Send it all @a (after 1)\n",
        "- [ ] 1. Look @a\n- [ ] 3. Send it @a (after 1)\n",
        "- [ ] 1. Look @a\n- [!] 2. Send it @a (after 1)\n",
        "- [x] 1. Look @a\n- [ ] 2. Send it @a (after 1)\n",
    ],
)
async def test_a_client_cannot_take_the_question_before_a_step_away_at_any_door(plan):
    ran = []
    with ScriptedModel({}) as model:
        graph = served(model, work=lambda context: ran.append(context.plan_step.id) or "done")
        await graph.ainvoke({"plan": ASKS_FIRST}, THREAD, interrupt_before=["plan_execution"])
        before = (await graph.aget_state(THREAD)).values["current_plan"]
        steps = parse_plan_from_markdown(plan).steps
        for edited in ({"content": plan}, before.replace(steps=steps, content="")):
            with pytest.raises(InvalidUpdateError, match=r"ask first\), which only the team may"):
                await graph.aupdate_state(THREAD, {"current_plan": edited})
            with pytest.raises(InvalidUpdateError, match=r"ask first\), which only the team may"):
                graph.update_state(THREAD, {"current_plan": edited})
            with pytest.raises(InvalidUpdateError, match=r"ask first\), which only the team may"):
                await graph.ainvoke(Command(update={"current_plan": edited}), THREAD)
        with pytest.raises(PlanDocumentError, match=r"ask first\), which only the team may"):
            await graph.ainvoke({"plan": plan}, THREAD)
        assert (await graph.aget_state(THREAD)).values["current_plan"] == before
    assert ran == []


async def test_a_plan_that_a_client_writes_under_the_key_of_requests_keeps_the_question():
    with ScriptedModel({}) as model:
        graph = served(model)
        await graph.ainvoke({"plan": ASKS_FIRST}, THREAD, interrupt_before=["plan_execution"])
        edit = {"plan": ASKS_FIRST.replace("; ask first", "")}
        await graph.aupdate_state(THREAD, edit, "__start__")
        with pytest.raises(PlanDocumentError, match=r"ask first\), which only the team may"):
            await graph.ainvoke(None, THREAD)


async def test_a_client_may_remove_a_whole_step_that_asks_first_and_the_team_may_do_all():
    shorter = ASKS_FIRST.replace("; ask first", "")
    with ScriptedModel({}) as model:
        graph = served(model)
        await graph.ainvoke({"plan": ASKS_FIRST}, THREAD, interrupt_before=["plan_execution"])
        await graph.aupdate_state(THREAD, {"current_plan": {"content": "- [ ] 1. Look @a\n"}})
        member = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
        own = build_graph(Team(Host(model), [member]), checkpointer=InMemorySaver())
        await own.ainvoke({"plan": ASKS_FIRST}, THREAD, interrupt_before=["plan_execution"])
        await own.aupdate_state(THREAD, {"current_plan": {"content": shorter}})
        assert not (await own.aget_state(THREAD)).values["current_plan"].step(2).ask_first
