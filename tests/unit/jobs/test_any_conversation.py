"""What holds in any conversation, about any spec, with any user."""

import asyncio
from datetime import UTC, datetime

from hypothesis import given, settings, strategies as st

from replan.jobs.actions import Outcome
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.extraction.port import Extracted
from replan.jobs.job import COMMAND, CONFIRMATION
from replan.jobs.processor import JobProcessor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.testing.users import COOPERATIVE, KINDS, SimulatedUser, converse

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
VALUES = {
    "text": st.sampled_from(["Rome", "New York", "北京", "a b c"]),
    "integer": st.integers(1, 9),
    "date": st.dates(NOW.date(), NOW.date().replace(year=2028)).map(str),
    "choice": st.sampled_from(["red", "green"]),
}


def question(name):
    return {"en": f"Which {name}?", "zh": f"哪个{name}"}


@st.composite
def slots(draw, name, earlier):
    kind = draw(st.sampled_from([*VALUES]))
    fields = {"minimum": 1, "maximum": 9} if kind == "integer" else {}
    if kind == "choice":
        fields = {"choices": {"red": ["红色"], "green": ["绿色"]}}
    upon = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2)) if earlier else []
    slot = Slot(
        name,
        question=question(name),
        type="text" if kind == "choice" else kind,
        depends_on=upon,
        secret=draw(st.booleans()),
        **fields,
    )
    return slot, draw(VALUES[kind])


@st.composite
def jobs(draw):
    """A spec, what somebody wants, and who that is."""
    drawn = []
    for name in NAMES[: draw(st.integers(1, 5))]:
        drawn.append(draw(slots(name, [each.name for each, _ in drawn])))
    names = [slot.name for slot, _ in drawn]
    needs = draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    first = JobCommand("publish", needs=needs, action="act", words=["发布"])
    first = first.replace(confirm=draw(st.sampled_from([None, True, False])))
    others = [JobCommand("edit", needs=names[:1], action="act")] if draw(st.booleans()) else []
    spec = JobSpec(
        "thing",
        slots=[slot for slot, _ in drawn],
        commands=[first, *others],
        actions=[ActionSpec("act", run=print, effects=draw(st.sampled_from(["unsafe", "keyed"])))],
        languages=["en", "zh"],
        max_asks=draw(st.integers(1, 4)),
        max_corrections=draw(st.integers(0, 4)),
    )
    wants = {slot.name: value for slot, value in drawn if slot.name in needs}
    kind, language = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["en", "zh"]))
    return SimulatedUser(kind, spec, "publish", wants, language, draw(st.integers(0, 999)))


class Recorder:
    def __init__(self):
        self.calls = []

    async def execute(self, call):
        self.calls.append(call)
        return Outcome(success=True, result="done")


class Liar:
    """A model that extracts what nobody said, sets what is no slot, and confirms by itself."""

    def __init__(self, user, rng):
        self.user, self.random = user, rng

    async def extract(self, wanted):
        names = [*wanted.names, "phase", "status", "__class__"]
        guesses = ["Rome", 3, None, "", {"a": [1]}, "2026-04-01", "red", True, ["x"], "\ud800"]
        values = {name: self.random.choice(guesses) for name in names if self.random.random() < 0.5}
        command = self.random.choice(["publish", "edit", "erase", ""])
        confirmed = self.random.choice([None, True, False])
        return Extracted.model_construct(command=command, values=values, confirmed=confirmed)


def processor_of(spec, executor, extractor=None):
    ids = iter(range(10_000))
    return JobProcessor(
        spec,
        extractor=extractor or RuleExtractor(),
        executor=executor,
        clock=lambda: NOW,
        new_id=lambda: f"job-{next(ids)}",
    )


def check_conversation(talk, spec, done):
    for result in talk.results:
        job = result.job
        if result.need_user_input:
            # It never asks for what it has.
            assert not set(job.asked.names) & set(job.collected_info)
            assert set(job.asked.names) <= {*job.required_info, COMMAND, CONFIRMATION} | {
                issue.field for issue in job.validation_errors
            }
        for name, value in job.collected_info.items():
            assert spec.slot(name).normal(value) == value
            assert spec.slot(name).issue(value, job.collected_info, "en") is None
    before = {result.job.id: result for result in talk.results[:-1]}
    for call in done:
        # It never acts with something missing or wrong, and only after a yes where that is due.
        command = spec.command(call.job.command)
        assert set(command.needs) <= set(call.parameters)
        assert call.parameters == call.job.collected_info
        if spec.is_confirmed(command):
            assert before[call.job.id].job.asked.names == (CONFIRMATION,)
            assert before[call.job.id].job.collected_info == call.parameters
    assert len({call.key for call in done}) == len(done)


def check_meant(talk, user):
    """No slot has a value that its user said about another one."""
    for result in talk.results:
        for name, value in result.job.collected_info.items():
            assert value in user.meant.get(name, ()), (name, value, talk.said)


async def check_entered_directly(processor, job):
    """The state after any conversation is that of the final answers, entered at once."""
    if not job.command:
        return
    direct = processor.new_job(job.command, job.collected_info)
    assert direct.collected_info == job.collected_info
    assert direct.missing_info == tuple(n for n in direct.required_info if n in job.missing_info)
    if job.status == "completed":
        result = await processor.process(direct)
        assert not result.job.missing_info
        planned = result.job.plan
        assert planned.items == job.plan.items


@given(jobs())
@settings(max_examples=60)
def test_what_holds_with_any_user(user):
    async def story():
        executor = Recorder()
        processor = processor_of(user.spec, executor)
        talk = await converse(processor, user)
        check_conversation(talk, user.spec, executor.calls)
        # What a hostile user says may be meant for any slot.
        if user.kind != "hostile":
            check_meant(talk, user)
        await check_entered_directly(processor, talk.job)
        if user.kind not in COOPERATIVE:
            assert talk.job.is_over
        elif talk.job.status == "completed":
            assert executor.calls[0].parameters == dict(user.wants)
        else:
            assert talk.job.error_code in ("corrections", "no_progress")
            assert user.spec.max_asks < 3 or user.kind == "changing"
        again = await converse(processor_of(user.spec, Recorder()), twin(user))
        assert [each.response_message for each in again.results] == [
            each.response_message for each in talk.results
        ]

    wants = dict(user.wants)

    def twin(one):
        return SimulatedUser(one.kind, one.spec, one.command, wants, one.language, one.seed)

    asyncio.run(story())


@given(jobs(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_what_holds_with_any_model(user, rng):
    async def story():
        executor = Recorder()
        processor = processor_of(user.spec, executor, Liar(user, rng))
        talk = await converse(processor, user)
        check_conversation(talk, user.spec, executor.calls)
        await check_entered_directly(processor, talk.job)
        assert all(result.job.type == "thing" for result in talk.results)

    asyncio.run(story())


class Adversary:
    """Wants a job to go on forever: it finds, changes, spoils, confirms and refuses by turns."""

    def __init__(self, rng):
        self.random = rng

    async def extract(self, wanted):
        if self.random.random() < 0.4:
            return Extracted()
        fit = {"text": ["u", "v"], "integer": [1, 2], "date": ["2026-04-01", "2026-04-02"]}
        values = {}
        for name in wanted.names:
            slot = wanted.spec.slot(name)
            right = [*slot.choices] if slot.choices else fit[slot.type]
            if self.random.random() < 0.3:
                values[name] = self.random.choice([*right, {"not": "right"}, [[]]])
        command = self.random.choice(["", "", "publish", "edit"])
        confirmed = self.random.choice([None, True, False])
        return Extracted.model_construct(command=command, values=values, confirmed=confirmed)

    async def execute(self, call):
        return Outcome(success=False, error="no", status=self.random.choice([409, 422]))


@given(jobs(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_no_user_model_and_service_together_keep_a_job_beyond_the_bound(user, rng):
    async def story():
        spec = user.spec
        names = [slot.name for slot in spec.slots]
        refusals = {"409": names[0], "422": names[-1]}
        commands = [
            each.replace(
                takes=[name for name in names if name not in each.needs], refusals=refusals
            )
            for each in spec.commands
        ]
        spec = spec.replace(commands=commands)
        adversary = Adversary(rng)
        processor = processor_of(spec, adversary, adversary)
        job = processor.new_job()
        for _ in range(spec.max_turns):
            job = (await processor.process(job, ["something"])).job
            if job.is_over:
                break
        assert job.is_over, (job.turns, spec.max_turns, job.asked)

    asyncio.run(story())
