"""Each reply of the corpus means what a person takes it to mean."""

from reply_corpus import Case, load

from replan.replies.readings import read_feedback, read_think
from replan.replies.specialist_reading import read_specialist
from replan.replies.unreadable import Complaint

READERS = {
    "think": read_think,
    "feedback": read_feedback,
    "specialist": read_specialist,
}
CASES = [case for node in READERS for case in load(node)]


def test_a_reply_is_read_as_a_person_would() -> None:
    read = {str(case): _differences(case) for case in CASES}
    assert {name: found for name, found in read.items() if found} == {}


def _differences(case: Case) -> list[str]:
    reading = READERS[case.node](case.text)
    if isinstance(reading, Complaint) is case.is_readable:
        return [f"readable: expected {case.is_readable} in {reading!r}"]
    if isinstance(reading, Complaint):
        if (reading.reading is not None) is not case.has_reading:
            return [f"has a reading: expected {case.has_reading} in {reading!r}"]
        reading = reading.reading
    return [] if reading is None else case.differences(reading)


def test_the_corpus_has_many_replies_of_the_host_and_none_twice() -> None:
    texts = [case.text for case in CASES if case.node != "specialist"]
    names = [str(case) for case in CASES]
    assert len(texts) >= 120
    assert len(set(texts)) == len(texts)
    assert len(set(names)) == len(names)
