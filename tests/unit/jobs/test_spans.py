"""Each part of a message fills one slot at most, and a secret stands nowhere but in its own."""

import asyncio
import json
import re
from datetime import UTC, datetime

from hypothesis import given, settings, strategies as st

from replan.assembly.jobs import job_agent
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.processor import JobProcessor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.jobs.views import shown_job, view_of
from replan.state.session.context import AgentContext

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
KEY = "a key of 32 bytes, kept secretly."
SLOTS = {
    each.name: each
    for each in (
        Slot("owner", label={"en": "name", "zh": "姓名"}, question="Your name?"),
        Slot("street", label={"en": "address", "zh": "地址"}, question="Your address?"),
        Slot(
            "nights", type="integer", maximum=99, label={"zh": "晚数"}, question="How many nights?"
        ),
        Slot("guests", type="number", label={"zh": "人数"}, question="How many guests?"),
        Slot("day", type="date", label={"zh": "日期"}, question="When?"),
        Slot("room", choices={"single": ["单人间"], "double": ["双人间"]}, question="Which room?"),
        Slot("area", pattern=r"\d{5}", label={"en": "zip", "zh": "邮编"}, question="Your zip?"),
        Slot("pin", pattern=r"^\d{4}$", label={"zh": "密码"}, question="Your PIN?", secret=True),
        Slot("phone", pattern=r"\+\d{8,15}", label={"zh": "手机"}, question="Phone?", secret=True),
        Slot("extras", type="list", label={"zh": "其他"}, question="Which extras?"),
    )
}
# As a user writes a value, in English and in Chinese, and what it is.
SAID = {
    "owner": [("Anna Smith", "王芳", {"Anna Smith", "王芳"})],
    "street": [("12 Elm Street", "建国路88号", {"12 Elm Street", "建国路88号"})],
    "nights": [("3 nights", "3晚", {3}), ("nights: 7", "晚数：7", {7})],
    "guests": [("2 guests", "人数是2", {2}), ("guests 5", "人数：5", {5})],
    "day": [("tomorrow", "明天", {"2026-03-03"}), ("on 5 May", "5月5日", {"2026-05-05"})],
    "room": [("double", "双人间", {"double"}), ("a single room", "单人间", {"single"})],
    "area": [("10115", "10115", {"10115"}), ("zip 20095", "邮编20095", {"20095"})],
    "pin": [("4821", "4821", {"4821"}), ("PIN 7733", "密码7733", {"7733"})],
    "phone": [("+4915112345678", "+4915112345678", {"+4915112345678"})],
    "extras": [("towels", "毛巾", {"towels", "毛巾"})],
}
AROUND = [
    ("", ""),
    ("I think ", " or so"),
    ("", "?"),
    ("name: ", ""),
    ("guests: ", ""),
    ("at ", "!"),
]


def spec_of(names):
    return JobSpec(
        "stay",
        languages=["en", "zh"],
        slots=[
            each.replace(question={"en": "Which?", "zh": "哪个"}) for each in map(SLOTS.get, names)
        ],
        commands=[JobCommand("book", needs=names, action="act")],
        actions=[ActionSpec("act", run=print)],
    )


def processor_of(spec):
    ids = iter(range(1_000))
    return JobProcessor(
        spec,
        extractor=RuleExtractor(),
        executor=None,
        clock=lambda: NOW,
        new_id=lambda: f"job-{next(ids)}",
    )


async def asked_for(processor, name):
    job = (await processor.process(processor.new_job())).job
    names = (name, *(each for each in job.asked.names if each != name))
    return job.replace(asked=job.asked.replace(names=names))


@given(
    st.sampled_from(["pin", "phone"]),
    st.sampled_from([*SLOTS]),
    st.sampled_from(AROUND),
    st.lists(st.sampled_from([*SLOTS]), unique=True, max_size=3),
)
@settings(max_examples=15)
def test_a_text_with_the_form_of_a_secret_is_shown_nowhere(secret, asked, around, others):
    names = [*dict.fromkeys((asked, secret, *others))]
    text = SAID[secret][0][0]
    said = f"{around[0]}{text}{around[1]}"

    async def story():
        spec = spec_of(names)
        processor = processor_of(spec)
        result = await processor.process(await asked_for(processor, asked), [said])
        job = result.job
        rest = {name: v for name, v in job.collected_info.items() if name != secret}
        shown = [shown_job(spec, job).to_dict(), view_of(spec, job), result.response_message, rest]
        digits = text.lstrip("+")
        assert digits not in json.dumps(shown, ensure_ascii=False), (said, asked)
        agent = job_agent(spec, clock=lambda: NOW, context_key=KEY)
        context = AgentContext(session_id="s")
        for each in ("hello", said):
            told = await agent.process(each, context)
            context = context.apply(told.context_updates)
        # What is encrypted has any digits in it, as parts of longer words.
        own = re.compile(rf"(?<![\w/]){digits}(?![\w/+])")
        assert not own.search(json.dumps([context.to_dict(), told.response, told.metadata]))

    asyncio.run(story())
