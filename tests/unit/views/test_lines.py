"""Events become lines, as the golden file of lines has them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from event_pages import events_on
from golden import check_golden
from replan.log.apply import apply
from replan.log.events import types
from replan.log.report import RunReport
from replan.views.live.reporters import Lines, json_line

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
TOLD = events_on(Path(__file__).with_name("lines.yaml"), step_id=2, specialist="clerk")


def tokens(*texts):
    return [types.AnswerToken(seq=1, run_id="r", text=text) for text in texts]


def lines_of(lines, events):
    """Tell a terminal events, each half a second after the one before it."""
    text, report = "", RunReport.begun("r", NOON)
    for number, event in enumerate(events, 1):
        timed = event.replace(at=NOON + timedelta(seconds=number / 2))
        before, report = report, apply(report, timed)
        text += lines.lines_of(timed, before, report)
    return text


def test_events_are_told_as_the_golden_file_has_them():
    shown = {
        name: lines_of(
            Lines(
                workspace=Path("work"),
                quiet=name.startswith("quiet"),
                verbose=name.startswith("verbose"),
            ),
            events,
        )
        for name, events in TOLD.items()
    }
    check_golden(Path(__file__).parent / "golden" / "lines.txt", shown)
    assert not {"\x1b", "\x07", "\r"} & {*"".join(shown.values())}


def test_a_run_that_breaks_off_leaves_the_cursor_on_a_new_line():
    lines = Lines(workspace=Path())
    assert lines.broken_off() == ""
    lines_of(lines, tokens("half"))
    assert lines.broken_off() == "\n"


def test_an_event_with_half_a_character_is_json_all_the_same():
    text = "a\ud800\x9b\u2028é\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    line = json_line(*tokens(text))
    assert json.loads(line)["text"] == text
    assert "\\u009b" in line
    assert line.replace("é", "").isascii()
    assert "\n" not in line[:-1]
