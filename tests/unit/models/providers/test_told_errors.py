"""What a body with status 200 says that is no reply."""

import json

import pytest

from cases import cases_of
from replan.models.providers.reply_body import status_in_body

CASES = cases_of(__file__)


@pytest.mark.parametrize(
    ("body", "status"),
    CASES["bodies"],
)
def test_a_body_that_is_no_reply_has_the_status_that_it_tells(body, status):
    assert status_in_body(json.dumps(body).encode()) == status


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xfe"])
def test_what_is_no_json_is_left_to_langchain(body):
    assert status_in_body(body) is None
