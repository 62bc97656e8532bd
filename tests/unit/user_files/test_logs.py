"""`--log-file`: lines of text with the time, and no secrets."""

import logging
import re
import warnings

import pytest

from replan.base.secrets.sources import learn_environment
from replan.cli.user_files.log_file import logging_to, off_the_screen
from replan.errors import InputError

ENVIRONMENT = {"OPENAI_API_KEY": "plain-as-day", "HOME": "/home/somebody", "SHORT_KEY": "abc"}


@pytest.fixture
def logged(tmp_path):
    path = tmp_path / "run.log"

    def log(*records):
        learn_environment(ENVIRONMENT)
        with logging_to(path):
            for level, message, fields in records:
                logging.getLogger("replan.test").log(level, message, **fields)
        return path.read_text().splitlines()

    return log


def test_a_record_is_a_line_with_time_level_and_fields(logged):
    fields = {"extra": {"step": 3, "said": "two words"}}
    (line,) = logged((logging.DEBUG, "step failed", fields))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} DEBUG replan.test: step failed "
        r"step=3 said='two words'",
        line,
    )


def test_secrets_are_masked_by_value_and_by_form(logged):
    (line,) = logged((logging.INFO, "got plain-as-day and sk-abcdefgh1234 from /home/somebody", {}))
    assert line.endswith("got *** and *** from /home/somebody")


def test_a_record_is_one_line_and_a_traceback_stands_indented_below(logged):
    error = ValueError("line one\nplain-as-day")
    lines = logged((logging.ERROR, "a\nb \x1b[2J", {"exc_info": error}))
    assert lines[0].endswith("a b �[2J")
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1] == "    ***"


def test_a_log_goes_on_at_the_end_and_the_logger_is_left_as_it_was(logged):
    logger = logging.getLogger("replan")
    before = (logger.level, list(logger.handlers))
    logged((logging.INFO, "one", {}))
    assert len(logged((logging.INFO, "two", {}))) == 2
    assert (logger.level, logger.handlers) == before


def test_a_log_that_cannot_be_opened_is_wrong_use(tmp_path):
    with pytest.raises(InputError, match="cannot be opened"), logging_to(tmp_path):
        raise AssertionError


def test_what_is_logged_after_a_command_tells_no_secret(capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    learn_environment(ENVIRONMENT)
    logger = logging.getLogger("somebody.else")
    with off_the_screen():
        logger.warning("not now")
    logger.warning("refused: plain-as-day, Authorization: Bearer abc123def456 \x1b[2J")
    assert capfd.readouterr().err == "refused: ***, Authorization: Bearer *** \ufffd[2J\n"


def test_what_others_warn_of_stands_in_the_log_and_not_on_the_screen(tmp_path, capfd):
    path = tmp_path / "run.log"
    logger = logging.getLogger("somebody.else")
    before = list(logging.getLogger().handlers)
    with warnings.catch_warnings(action="always"), off_the_screen():
        logger.warning("nobody reads this")
        learn_environment(ENVIRONMENT)
        with logging_to(path):
            logger.info("a detail")
            logger.warning("look at plain-as-day")
            warnings.warn("old ways", UserWarning, stacklevel=1)
    lines = path.read_text().splitlines()
    assert lines[0].endswith("WARNING somebody.else: look at ***")
    assert "UserWarning: old ways" in lines[1]
    assert capfd.readouterr().err == ""
    assert logging.getLogger().handlers == before
