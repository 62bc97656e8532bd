"""Each reply of the corpus means what a person takes it to mean."""

import pytest
from reply_corpus import Case, load

from replan.replies.readings import Complaint, read_feedback, read_specialist, read_think

READERS = {
    "think": read_think,
    "feedback": read_feedback,
    "specialist": read_specialist,
}
CASES = [case for node in READERS for case in load(node)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_reply_is_read_as_a_person_would(case: Case) -> None:
    reading = READERS[case.node](case.text)
    assert isinstance(reading, Complaint) is not case.is_readable, reading
    if isinstance(reading, Complaint):
        assert (reading.reading is not None) is case.has_reading, reading
        reading = reading.reading
    if reading is not None:
        assert case.differences(reading) == []


def test_the_corpus_has_many_replies_of_the_host_and_none_twice() -> None:
    texts = [case.text for case in CASES if case.node != "specialist"]
    names = [str(case) for case in CASES]
    assert len(texts) >= 120
    assert len(set(texts)) == len(texts)
    assert len(set(names)) == len(names)
