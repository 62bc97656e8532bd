"""Who does a step: whom it names, else whom the cards point to without doubt, else nobody."""

import pytest

from replan import Host, InputError, PlanDocumentError, Specialist, Team, build_graph, run, stream
from replan.testing import ScriptedModel
from scripts import COMPLEX
from states import state_of

DONE = "---\nverdict: complete\nfeedback: fine\n---\nThe answer."


def host(script, *, team=None, did=None, **options):
    """A graph on a script, whose specialists note what they did."""

    def work(name):
        def do(context):
            if did is not None:
                did.append((name, context.plan_step.id))
            return f"{name} did it"

        return do

    team = team or {
        "payer": ("Pays invoices by bank transfer.", {}),
        "mailer": ("Sends e-mail to customers.", {}),
    }
    members = [
        Specialist(name=name, intended_use=use, run=work(name), **more)
        for name, (use, more) in team.items()
    ]
    model = ScriptedModel(script)
    config = Team(host=Host(model=model), specialists=members, **options)
    return build_graph(config), model


async def test_a_name_that_nobody_has_is_a_mistake_that_the_model_is_asked_about_once():
    did = []
    graph, model = host(
        {
            "think": COMPLEX + "- [ ] 1. Collect facts @researcher\n- [ ] 2. Sum up @analyst\n",
            "plan_creation": "- [ ] 1. Send the facts @mailer\n",
            "feedback": DONE,
        },
        did=did,
    )
    state = (await run(graph, "Facts, please")).state
    assert did == [("mailer", 1)]
    assert state["unreadable_replies"] == []
    asked = model.calls[1].messages[-1].text
    assert "Step 1 (line 1) names @researcher, whom the team does not have." in asked
    assert "Step 2 (line 2) names @analyst" in asked
    assert "@payer, @mailer" in asked


async def test_a_name_that_stays_unknown_fails_as_nobody_and_stays_in_the_document():
    did = []
    plan = "- [ ] 1. Collect facts @researcher\n- [ ] 2. Send them @mailer (after 1)\n"
    graph, _ = host({"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE}, did=did)
    events = [event async for event in stream(graph, "Facts, please")]
    state = await state_of(
        run(host({"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE})[0], "x")
    )
    assert did == []
    (failed,) = [event for event in events if event.type == "specialist_completed"]
    assert (failed.step_id, failed.specialist) == (1, "researcher")
    assert "Nobody on the team can do this" in failed.result.error
    assert "@researcher" in state["current_plan"].content
    assert state["current_plan"].step(1).status == "failed"
    assert "Nobody on the team can do this" in state["current_plan"].step(1).feedback
    assert state["outcome"] == "failed"
    assert state["unreadable_replies"][0].node == "plan_creation"
    assert state["execution_history"][0].results.failed_results == ("1/researcher",)


async def test_one_known_name_beside_an_unknown_one_does_its_part_and_the_other_is_told():
    did = []
    plan = "- [ ] 1. Send the facts @mailer @researcher\n"
    graph, _ = host({"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE}, did=did)
    state = (await run(graph, "x")).state
    assert did == [("mailer", 1)]
    assert state["current_plan"].step(1).specialists == ("mailer", "researcher")
    assert state["current_specialist_results"]["1/researcher"].status == "failed"


async def test_a_step_without_a_name_goes_to_the_card_that_fits_and_an_event_says_so():
    did = []
    graph, _ = host(
        {"think": COMPLEX + "- [ ] 1. E-mail the customers\n", "feedback": DONE}, did=did
    )
    events = [event async for event in stream(graph, "x")]
    (routed,) = [event for event in events if event.type == "steps_routed"]
    assert routed.assignments == {1: "mailer"}
    assert did == [("mailer", 1)]


async def test_a_step_without_a_name_that_fits_no_card_is_asked_about_then_fails():
    did = []
    plan = "- [ ] 1. Think about colours\n"
    graph, model = host({"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE}, did=did)
    state = (await run(graph, "x")).state
    assert did == []
    assert "Step 1 (line 1) names no specialist" in model.calls[1].messages[-1].text
    assert state["current_plan"].step(1).status == "failed"
    assert state["outcome"] == "failed"


async def test_a_persons_plan_is_refused_with_all_steps_that_nobody_does():
    graph, _ = host({})
    plan = "# Job\n\n- [ ] 1. Collect @researcher @critic\n- [ ] 2. Think about colours\n"
    with pytest.raises(PlanDocumentError) as refused:
        await run(graph, {"plan": plan})
    mistakes = refused.value.mistakes
    assert [(each.line, each.column, each.reason.partition(",")[0]) for each in mistakes] == [
        (3, 18, "Step 1 names @researcher"),
        (3, 30, "Step 1 names @critic"),
        (4, 3, "Step 2 names no specialist"),
    ]
    assert all("@payer, @mailer" in each.fix for each in mistakes)


async def test_a_team_of_one_does_a_step_that_names_nobody_only_if_its_card_fits():
    did = []
    graph, _ = host({"feedback": DONE}, team={"painter": ("Mixes colours.", {})}, did=did)
    refused = "names no specialist, and no card fits it. Use one of: @painter."
    with pytest.raises(InputError, match=refused):
        await run(graph, {"plan": "- [ ] 1. Pay the invoice\n"})
    await run(graph, {"plan": "- [ ] 1. Mix the colours\n"})
    assert did == [("painter", 1)]


async def test_a_refused_plan_tells_of_a_name_in_the_wrong_place():
    graph, _ = host({"feedback": DONE}, team={"a": ("x", {}), "b": ("x", {})}, did=[])
    told = r"line 1: '@a' looks like a specialist .* write it at the end of the step's line"
    with pytest.raises(InputError, match=told):
        await run(graph, {"plan": "- [ ] 1. @a: pay the invoice\n"})


async def test_a_list_in_words_of_order_is_asked_about_once_then_done_with_a_warning():
    plan = "1. Find it @a\n2. Then compare @a\n"
    script = {"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE}
    graph, model = host(script, team={"a": ("x", {})}, did=[])
    state = (await run(graph, "Go.")).state
    assert [call.node for call in model.calls] == ["think", "plan_creation", "feedback"]
    assert "'Then' looks like a dependency" in model.calls[1].messages[-1].text
    assert "'Then' looks like a dependency" in " ".join(state["warnings"])


@pytest.mark.parametrize("others", [{}, {"mailer": ("Sends e-mail.", {})}])
async def test_work_that_is_declared_unsafe_is_done_only_where_a_plan_names_it(others):
    did = []
    team = {"payer": ("Pays invoices.", {"effects": "unsafe"}), **others}
    graph, _ = host({"feedback": DONE}, team=team, did=did)
    with pytest.raises(InputError, match="@payer does only work that names it"):
        await run(graph, {"plan": "- [ ] 1. Pay the invoice\n"})
    await run(graph, {"plan": "- [ ] 1. Pay the invoice @payer\n"})
    assert did == [("payer", 1)]


async def test_a_name_that_nobody_has_in_a_revision_is_asked_about_then_fails():
    did = []
    revision = (
        "---\nverdict: continue\nupdate: more\n---\n"
        "- [x] 1. Send mail @mailer\n- [ ] 2. Criticise @critic\n"
    )
    graph, model = host(
        {
            "think": COMPLEX + "- [ ] 1. Send mail @mailer\n",
            "feedback": [revision, DONE],
            "plan_update": "- [x] 1. Send mail @mailer\n- [ ] 2. Criticise @critic\n",
        },
        did=did,
    )
    state = (await run(graph, "x")).state
    assert did == [("mailer", 1)]
    assert "names @critic, whom the team does not have" in model.calls[2].messages[-1].text
    assert state["current_plan"].step(2).status == "failed"
    assert "@critic" in state["current_plan"].content


async def test_a_step_that_nobody_does_fails_when_its_turn_comes():
    did = []
    plan = "- [ ] 1. Send mail @mailer\n- [ ] 2. Clean up @janitor (if 1 failed)\n"
    graph, _ = host({"think": COMPLEX + plan, "plan_creation": plan, "feedback": DONE}, did=did)
    state = (await run(graph, "x")).state
    assert did == [("mailer", 1)]
    assert state["current_plan"].step(2).status == "skipped"
    assert state["outcome"] == "completed"


async def test_what_looks_like_a_dependency_and_is_text_is_told_by_an_event():
    graph, _ = host({"feedback": DONE})
    plan = "- [ ] 1. Pay @payer\n- [ ] 2. Send (needs all of it) @mailer\n"
    events = [event async for event in stream(graph, {"plan": plan})]
    (told,) = [event for event in events if event.type == "plan_parse_warning"]
    assert [(each.line, each.text) for each in told.parse_warnings] == [(2, "(needs all of it)")]
