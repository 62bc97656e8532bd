"""Sentences as people speak them: none is read wrongly in silence, and few are asked for again."""

from pathlib import Path

import pytest

from cases import read_page
from replan.jobs.job import COMMAND, CONFIRMATION
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobSpec

pytestmark = pytest.mark.anyio
CORPUS = read_page(Path(__file__).with_name("sentences.yaml"))
MOST_ASKED_AGAIN = 0.21


def spec_of(name):
    fields = CORPUS["jobs"][name]["spec"]
    return JobSpec(**fields, actions=[ActionSpec("act", run=print)])


def held_at(name, question):
    """The values that a job has when it asks a question."""
    held = CORPUS["jobs"][name]["held"]
    if question == "start":
        return {}
    names = [*held]
    return {each: held[each] for each in names[: [*names, question].index(question)]}


async def read(processor, name, question, said):
    """The values before and after a message, and what was answered."""
    held = held_at(name, question)
    language = "zh" if any(sign >= "\u4e00" for sign in said) else "en"
    spec = processor.spec
    job = processor.new_job(spec.commands[0].name, held, language=language)
    if question != "start":
        job = (await processor.process(job)).job
        asked = CONFIRMATION if question == "confirm" else question
        job = job.replace(asked=job.asked.replace(names=(asked, *job.asked.names[1:])))
    return held, await processor.process(job, [said])


async def test_no_sentence_is_read_wrongly_in_silence_and_few_are_asked_for_again(make):
    wrong, again = [], []
    for name, question, said, values in CORPUS["sentences"]:
        held, result = await read(make(spec_of(name)), name, question, said)
        collected = result.job.collected_info
        expected = {**held, **values}
        if any(value != expected.get(slot) for slot, value in collected.items()):
            wrong.append((name, question, said, values, collected))
        elif any(slot not in collected for slot in values) or any(
            collected.get(slot) != value for slot, value in values.items()
        ):
            again.append((name, question, said, values, collected))
        if values == {} and question != "confirm":
            assert result.job.asked.names[0] not in (COMMAND, CONFIRMATION), said
    assert wrong == []
    assert len(again) <= MOST_ASKED_AGAIN * len(CORPUS["sentences"]), again
