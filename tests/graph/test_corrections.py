"""A person has a step of a run done again, or leaves it out: the run goes on, or a new one does."""

import asyncio

import pytest

from replan import Host, InputError, Limits, RunSettings, Specialist, Team, ask_user, open_runtime
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.nodes.final_answer import generate_final_answer
from replan.runs.calling.compiled import team_of
from replan.runs.continued.correcting import Correction, repeated_by
from replan.testing import ScriptedModel, always
from scripts import END

pytestmark = pytest.mark.one_store

PLAN = """\
# Letters

- [ ] 1. Address @a
- [ ] 2. Text @a (after 1; retries 0)
- [ ] 3. Send @a (after 2)
- [ ] 4. Aside @a
"""


class Office:
    """Work that is counted, fails while it is told to, and asks or is held up where it is to."""

    def __init__(self):
        self.did, self.fails, self.asks, self.held = [], set(), set(), set()
        self.at_work, self.leave = asyncio.Event(), asyncio.Event()

    async def work(self, context):
        step = context.plan_step.id
        if step in self.asks:
            ask_user(f"May {step} go on?")
        self.did.append(step)
        if step in self.held:
            self.at_work.set()
            await self.leave.wait()
        if step in self.fails:
            raise ValueError(f"{step} is broken")
        return f"{step}.{self.did.count(step)} of {' '.join(context.inputs.values()) or 'nothing'}"

    def team(self, effects="pure", **options):
        model = ScriptedModel({"feedback": always(END)})
        worker = Specialist(name="a", intended_use="Works.", run=self.work, effects=effects)
        limits = options.pop("limits", Limits())
        return Team(host=Host(model=model), specialists=[worker], limits=limits, **options)


@pytest.fixture
def office():
    return Office()


async def told(runtime, run_id, kind):
    return [e async for e in runtime.events(run_id) if e.type == kind]


async def test_a_failed_step_of_a_waiting_run_is_done_again_by_a_persons_word(office, where):
    office.asks, office.fails = {4}, {2}
    async with open_runtime(office.team(), storage=where) as runtime:
        first = await runtime.run({"plan": PLAN})
        assert (first.outcome, office.did) == ("waiting", [1, 2])
        office.fails = set()
        second = await (await runtime.retry(first.run_id, 2, by="anna"))
        assert (second.run_id, second.outcome) == (first.run_id, "waiting")
        assert office.did == [1, 2, 2, 3]
        view = await runtime.get(first.run_id)
        update = view.plan.update_history[-1]
        assert (update.by, update.version, update.description) == (
            "person",
            2,
            "Done again: step 2, by anna.",
        )
        (event,) = await told(runtime, first.run_id, "run_corrected")
        assert (event.action, event.step_id, event.by, event.origin) == ("retry", 2, "anna", "")
        done = await (await runtime.answer(first.run_id, "yes"))
        assert (done.outcome, done.origin, office.did) == ("completed", "", [1, 2, 2, 3, 4])


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
async def test_a_correction_that_leaves_nothing_to_do_is_told_all_the_same(office, where):
    office.asks = {1, 4}
    async with open_runtime(office.team(), storage=where) as runtime:
        first = await runtime.run({"plan": PLAN})
        assert (await (await runtime.skip(first.run_id, 4, by="anna"))).outcome == "waiting"
        (event,) = await told(runtime, first.run_id, "run_corrected")
        assert (event.action, event.step_id, event.by) == ("skip", 4, "anna")
        kinds = [each.type async for each in runtime.events(first.run_id)]
        assert kinds[-4:] == ["run_resumed", "run_corrected", "plan_updated", "run_stopped"]


async def test_callbacks_hear_of_a_correction_and_of_each_rest_in_the_order_of_the_log(office):
    class All:
        hears_tokens = False

        def __init__(self):
            self.heard = []

        async def on_event(self, event):
            self.heard.append(event.type)

        async def on_plan_updated(self, info):
            self.heard.append(f"by {info.by}")

    office.asks, office.fails, ears = {4}, {2}, All()
    async with open_runtime(office.team().replace(callbacks=[ears]), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        await (await runtime.retry(first.run_id, 2, by="anna"))
        await (await runtime.skip(first.run_id, 4))
        new = await (await runtime.skip(first.run_id, 2))
        logged = [
            each.type
            for run_id in (first.run_id, new.run_id)
            async for each in runtime.events(run_id)
        ]
    assert [each for each in ears.heard if not each.startswith("by ")] == logged
    assert logged.count("run_corrected") == 3
    assert logged.count("run_stopped") == 2
    before = ears.heard.index("run_corrected")
    assert ears.heard[before : before + 3] == ["run_corrected", "steps_invalidated", "by person"]


async def test_what_follows_from_a_completed_step_is_done_again_with_its_new_result(office, where):
    office.asks = {4}
    async with open_runtime(office.team(), storage=where) as runtime:
        first = await runtime.run({"plan": PLAN})
        again = await (await runtime.retry(first.run_id, 2))
        assert office.did == [1, 2, 3, 2, 3]
        assert again.results[3].text == "3.2 of 2.2 of 1.1 of nothing"
        (reopened,) = await told(runtime, first.run_id, "steps_invalidated")
        assert [*map(str, reopened.reruns)] == ["2 (reopened)", "3 (after 2)"]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_what_waits_for_a_skipped_step_goes_on_without_it_and_the_answer_says_so(
    office, where
):
    office.asks, office.fails = {4}, {2}
    async with open_runtime(office.team(), storage=where) as runtime:
        first = await runtime.run({"plan": PLAN})
        second = await (await runtime.skip(first.run_id, 2, by="anna"))
        assert (second.outcome, office.did) == ("waiting", [1, 2, 3])
        done = await (await runtime.answer(first.run_id, "yes"))
        assert done.outcome == "completed"
        assert done.text.endswith("**Not done:**\n\n- 2. Text: Skipped by anna.")


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_what_ended_before_a_run_was_stopped_in_a_round_is_done_again(office, where):
    office.held = {2}
    async with open_runtime(office.team(), storage=where, grace=0) as runtime:
        run = await runtime.start({"plan": PLAN})
        await office.at_work.wait()
        await run.stop()
        assert (await run).outcome == "interrupted"
        office.held = set()
        done = await (await runtime.retry(run.run_id, 1))
        assert done.outcome == "completed"
        assert sorted(office.did) == [1, 1, 2, 2, 3, 4]
        assert done.results[2].text == "2.2 of 1.2 of nothing"


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
async def test_a_step_that_was_stopped_in_its_middle_can_be_skipped(office, where):
    office.held = {2}
    alone = PLAN.replace("- [ ] 4. Aside @a\n", "")  # what is cut off beside it would ask, too
    async with open_runtime(office.team("unsafe"), storage=where, grace=0) as runtime:
        run = await runtime.start({"plan": alone})
        await office.at_work.wait()
        await run.stop()
        await run
        done = await (await runtime.skip(run.run_id, 2, by="bo"))
        assert (done.outcome, sorted(office.did)) == ("completed", [1, 2, 3])


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_a_run_that_a_limit_ended_goes_on_where_the_limit_leaves_room(office, where):
    office.fails = {2}
    limits = Limits(max_stalls=9)
    office_team = office.team(limits=limits)
    async with open_runtime(office_team, storage=where) as runtime:
        first = await runtime.run({"plan": PLAN}, settings=RunSettings(limits=Limits(max_steps=3)))
        assert (first.outcome, first.limit_reached) == ("partial", "max_steps")
        office.fails = set()
        done = await (await runtime.retry(first.run_id, 2))
        assert (done.run_id, done.limit_reached) == (first.run_id, "max_steps")
        assert office.did == [1, 2, 2, 3]
        with pytest.raises(InputError, match=r"max_steps=3 leaves no room for the step\. Raise it"):
            await runtime.skip(first.run_id, 4)
        more = RunSettings(limits=Limits(max_steps=4))
        last = await (await runtime.skip(first.run_id, 4, settings=more, by="anna"))
        assert (last.outcome, last.limit_reached, office.did) == ("completed", "", [1, 2, 2, 3])
        assert any("loosened by anna" in each for each in last.warnings)


async def test_a_run_that_is_over_stays_and_a_new_one_keeps_what_does_not_follow(office, where):
    office.fails = {2}
    async with open_runtime(office.team(), storage=where) as runtime:
        first = await runtime.run({"plan": PLAN}, labels={"user": "eva"})
        assert (first.outcome, sorted(office.did)) == ("partial", [1, 2, 4])
        office.fails = set()
        run = await runtime.retry(first.run_id, 2, by="anna")
        second = await run
        assert run.run_id == second.run_id != first.run_id
        assert (second.outcome, second.origin) == ("completed", first.run_id)
        assert sorted(office.did) == [1, 2, 2, 3, 4]
        assert second.results[3].text == "3.1 of 2.2 of 1.1 of nothing"
        view = await runtime.get(second.run_id)
        assert (view.origin, view.labels, view.title) == (
            first.run_id,
            {"user": "eva"},
            "Letters",
        )
        events = [each async for each in runtime.events(second.run_id)]
        assert [each.type for each in events[:3]] == [
            "run_started",
            "run_corrected",
            "steps_invalidated",
        ]
        corrected = events[1]
        told = (corrected.action, corrected.step_id, corrected.by, corrected.origin)
        assert told == ("retry", 2, "anna", first.run_id)
        assert (await runtime.get(first.run_id)).outcome == "partial"


async def test_the_answer_without_a_model_has_what_an_earlier_run_did(office):
    office.fails = {2}
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        again = await (await runtime.retry(first.run_id, 2, by="anna"))
    assert again.outcome == "partial"
    text = generate_final_answer(again.state)
    assert "## 1. Address\n\n1.1 of nothing" in text
    assert "## 4. Aside\n\n4.1 of nothing" in text


@pytest.mark.parametrize("effects", ["unsafe", "keyed"])
async def test_a_new_run_repeats_no_effect_unasked(office, effects, tmp_path):
    async with open_runtime(office.team(effects), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": PLAN})
        refused = (
            rf"step 2 at @a \({effects}\) was done; step 3 at @a \({effects}\) was done\. "
            r"Allow it with allow_repeat=True"
        )
        with pytest.raises(InputError, match=refused):
            await runtime.retry(first.run_id, 2)
        assert [view.run_id for view in await runtime.runs()] == [first.run_id]
        second = await (await runtime.retry(first.run_id, 2, allow_repeat=True))
        assert (second.outcome, sorted(office.did)) == ("completed", [1, 2, 2, 3, 3, 4])


async def test_a_run_that_goes_on_asks_before_it_repeats_an_unsafe_effect(office, tmp_path):
    office.asks = {4}
    async with open_runtime(office.team("unsafe"), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": PLAN})
        second = await (await runtime.retry(first.run_id, 3))
        assert {ask.kind for ask in second.pending_questions} == {"question", "unknown_outcome"}
        assert office.did == [1, 2, 3]


@pytest.mark.parametrize(
    ("action", "step", "problem"),
    [
        ("retry", 9, r"This run has no step 9\. Its steps: 1, 2, 3, 4\."),
        ("retry", 3, r"Step 3 was not begun, since step 2 failed\. Retry that one\."),
        ("retry", 4, r"Step 4 waits for an answer\. Answer it, or skip the step\."),
        ("skip", 1, r"Step 1 is completed, so there is nothing to skip\."),
        ("skip", 9, r"This run has no step 9"),
    ],
)
async def test_what_cannot_be_corrected_says_why_and_nothing_is_done(office, action, step, problem):
    office.asks, office.fails = {4}, {2}
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        before = await runtime.get(first.run_id)
        with pytest.raises(InputError, match=problem):
            await getattr(runtime, action)(first.run_id, step)
        assert await runtime.get(first.run_id) == before


async def test_a_step_is_not_skipped_twice(office):
    office.asks, office.fails = {4}, {2}
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        await (await runtime.skip(first.run_id, 2))
        with pytest.raises(InputError, match=r"Step 2 is skipped already\."):
            await runtime.skip(first.run_id, 2)


async def test_a_plan_that_waits_for_a_word_is_shown_with_the_correction(office):
    async with open_runtime(office.team(approval="always"), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN})
        with pytest.raises(InputError, match="Step 2 is still to be done"):
            await runtime.retry(first.run_id, 2)
        second = await (await runtime.skip(first.run_id, 2, by="anna"))
        (asked,) = second.pending_questions
        assert (asked.kind, "- [-] 2. Text" in asked.text) == ("plan", True)
        done = await (await runtime.answer(first.run_id, {asked.key: "approve"}))
        assert (done.outcome, sorted(office.did)) == ("completed", [1, 3, 4])


async def test_a_run_whose_thread_went_on_with_another_is_not_corrected_in_place(office):
    office.asks = {4}
    async with open_runtime(office.team(), storage=":memory:") as runtime:
        first = await runtime.run({"plan": PLAN}, thread_id="t")
        await runtime.run({"plan": "- [ ] 1. Else @a\n"}, thread_id="t")
        with pytest.raises(InputError, match="Another run has begun on the thread of this one"):
            await runtime.retry(first.run_id, 2)


async def test_a_run_without_a_plan_has_no_step(office):
    script = {"think": "---\ncomplexity: simple\n---\nParis."}
    team = Team(host=Host(model=ScriptedModel(script)), specialists=office.team().specialists)
    async with open_runtime(team, storage=":memory:") as runtime:
        answered = await runtime.run("The capital of France?")
        with pytest.raises(InputError, match="This run has no plan, so there is no step in it"):
            await runtime.retry(answered.run_id, 1)


def test_code_that_is_not_asynchronous_corrects_a_run_in_the_same_way(office):
    office.fails = {2}
    with open_runtime(office.team(), storage=":memory:") as runtime:
        first = runtime.run({"plan": PLAN})
        office.fails = set()
        assert runtime.retry(first.run_id, 2).result().outcome == "completed"
        assert runtime.skip(first.run_id, 2).result().outcome == "completed"


@pytest.mark.parametrize("place", [":memory:", "runs.db"])
async def test_a_new_run_keeps_whole_results_and_the_request(office, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long = "A long result." * 100

    async def work(context):
        await Office.work(office, context)
        return long if context.plan_step.id == 1 else " ".join(context.inputs.values())

    model = ScriptedModel(
        {"think": f"---\ncomplexity: complex\n---\n{PLAN}", "feedback": always(END)}
    )
    worker = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    office.fails = {2}
    team = Team(host=Host(model=model), specialists=[worker])
    async with open_runtime(team, storage=place) as runtime:
        first = await runtime.run("Write to the mayor.")
        second = await (await runtime.skip(first.run_id, 2))
        office.fails = set()
        third = await (await runtime.retry(second.run_id, 2))
        assert third.origin == second.run_id
        assert third.results[2].text == long
        assert [each.text for each in third.state["messages"]] == [
            "Write to the mayor.",
            "The end.",
        ]


@pytest.mark.parametrize("effects", ["unsafe", None])
async def test_a_step_that_failed_after_it_may_have_acted_is_not_repeated_unasked(
    office, effects, tmp_path
):
    office.fails = {2}
    async with open_runtime(office.team(effects), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": PLAN})
        assert first.outcome == "partial"
        told = r"step 2 at @a \(unsafe\) failed, and may have taken effect\. Allow it"
        with pytest.raises(InputError, match=told):
            await runtime.retry(first.run_id, 2)
        assert office.did.count(2) == 1


@pytest.mark.parametrize("is_sent", [True, False])
async def test_a_job_that_failed_says_whether_anything_was_sent(is_sent, tmp_path):
    def send():
        raise ConnectionError("reset")

    called = {"endpoint": "/payments", "method": "POST", "params": {}}
    pay = JobCommand("pay", needs=[], action="call_api", effects="unsafe", parameters=called)
    if is_sent:
        pay = JobCommand("pay", needs=[], action="send")
    spec = JobSpec(
        "pay",
        slots=[],
        commands=[pay],
        actions=[ActionSpec("send", run=send, effects="unsafe")],
        base_urls=["http://127.0.0.1:9"],
        confirm=False,
    )
    clerk = Specialist("clerk", "Pays.", job=spec)
    team = Team(host=Host(model=ScriptedModel({"feedback": always(END)})), specialists=[clerk])
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": "- [ ] 1. Pay @clerk\n"})
        assert first.outcome == "failed"
        told = (
            r"\(unsafe\) failed, and may have taken effect" if is_sent else r"\(keyed\) was begun"
        )
        with pytest.raises(InputError, match=f"step 1 at @clerk {told}"):
            await runtime.retry(first.run_id, 1)


async def test_of_a_run_that_goes_on_only_a_failure_is_told_that_may_have_acted(office, tmp_path):
    office.asks, office.fails = {4}, {2}
    async with open_runtime(office.team("unsafe"), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": PLAN})
        view = await runtime.get(first.run_id)
        known = view, team_of(runtime.graph), runtime.storage.log
        # The run itself asks before it repeats the first step; the second follows from it.
        for step in (1, 2):
            told = await repeated_by(Correction(action="retry", step=step), *known)
            assert told == ["step 2 at @a (unsafe) failed, and may have taken effect"]
