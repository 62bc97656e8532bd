"""No text makes its readers do much more work than an ordinary one of its size and kind."""

import time
from collections.abc import Callable, Collection

import pytest

from counting import calls
from replan.replies.forms.json_text import decode, unwrap
from replan.replies.readings import read_feedback, read_plan, read_think

TEAM = ("a", "writer")
HEAD = "The board meets on Monday.\n"
STEPS = "".join(
    f"- [ ] {number}. Total refunds of last year and say what changed @a (after {number - 1})\n"
    for number in range(2, 9)
)
JUDGED = "---\nverdict: incomplete\nsuggested_action: update_plan\n---\n"
# An ordinary plan takes ten calls for a character; each limit is half of what it once took.
HOSTILE = {
    "braces without keys": (read_plan, HEAD + "{" * 40 + STEPS, 150),
    "brackets that never close": (
        read_plan,
        "- [ ] 8. Sum it @a - 9. S" + "*a, (" * 220 + " it",
        60,
    ),
    "words for an order": (read_feedback, JUDGED + STEPS[:-1] + "和\u202eafter 1, " * 60, 80),
    "tags between names": (read_think, HEAD + "- [ ] 1. Sum" + "@nobody </think>" * 80, 200),
}


@pytest.mark.parametrize(("read", "text", "most"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_reply_is_read_with_few_calls(
    read: Callable[[str, Collection[str]], object], text: str, most: int
):
    # Another text, since the words of the grammar are compiled once for all texts.
    read(HEAD + "- [ ] 1. Weigh it @a\n- [ ] 2. Weigh it agin (aftr 1) @b\n", TEAM)

    assert calls(lambda: read(text, TEAM)) < most * len(text)


@pytest.mark.parametrize("piece", ['1"', "`a: {a: ]", "'#", "“:", "{- }"])
def test_broken_json_of_any_pieces_is_given_up_soon(piece: str):
    text = "{" + piece * (20_000 // len(piece))
    start = time.process_time()
    decode(text, 0)

    # A twentieth of it is usual; a repair that reads again and again takes ten seconds.
    assert time.process_time() - start < 4


def test_broken_json_with_an_answer_full_of_quotation_marks_is_repaired():
    said = 'He said "yes", and she said "no": fine. <a href="x">it\'s</a>\\n' * 80
    found = decode('{"complexity": "simple", "answer": "' + said, 0)

    assert unwrap(found.value, lambda fields: fields.get("complexity") == "simple") is not None
