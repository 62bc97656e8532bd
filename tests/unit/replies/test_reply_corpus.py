"""Each reply of the corpus means what a person takes it to mean, or is asked about."""

from reply_corpus import Case, load

from replan.prompts.replies.readings import (
    Reading,
    SpecialistReading,
    read_feedback,
    read_specialist,
    read_think,
)

READERS = {
    "think": read_think,
    "feedback": read_feedback,
    "specialist": read_specialist,
}
CASES = [case for node in READERS for case in load(node)]


def test_a_reply_is_read_as_a_person_would_or_asked_about():
    read = {str(case): _differences(case) for case in CASES}
    assert {name: found for name, found in read.items() if found} == {}


def test_replies_near_to_the_form_are_read_at_once():
    read = [case for case in CASES if not _is_asked(READERS[case.node](case.text))]
    assert len(read) >= 100


def _is_asked(reading: Reading) -> bool:
    """Whether a reply of the host is asked for again; a specialist's text is read in any case."""
    return bool(reading.wrong) and not isinstance(reading, SpecialistReading)


def _differences(case: Case) -> list[str]:
    reading = READERS[case.node](case.text)
    if _is_asked(reading):
        return []
    return case.differences(reading) if case.is_readable else [f"not asked: {reading!r}"]


def test_the_corpus_has_many_replies_of_the_host_and_none_twice():
    texts = [case.text for case in CASES if case.node != "specialist"]
    names = [str(case) for case in CASES]
    assert len(texts) >= 120
    assert len(set(texts)) == len(texts)
    assert len(set(names)) == len(names)
