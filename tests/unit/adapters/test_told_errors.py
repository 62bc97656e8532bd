"""What a body with status 200 says that is no reply."""

import json

import pytest

from replan.adapters.reply_body import status_in_body

REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}}]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (REPLY, None),
        ({**REPLY, "error": None, "code": 0}, None),
        ({**REPLY, "error": {"message": "late"}}, None),
        ({"error": {"message": "slow down", "code": 429}}, 429),
        ({"error": {"message": "slow down", "code": "429"}}, 429),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429),
        ({"error": {"message": "who?", "code": "invalid_api_key", "status": 401}}, 401),
        ({"object": "error", "message": "no", "code": 400}, 400),
        ({"object": "error", "message": "no", "code": 50001}, 502),
        ({"detail": "no"}, 502),
        ({"choices": "none"}, 502),
        ({"choices": ["text"]}, 502),
        ([], 502),
        (None, 502),
    ],
)
def test_a_body_that_is_no_reply_has_the_status_that_it_tells(body, status):
    assert status_in_body(json.dumps(body).encode()) == status


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xfe"])
def test_what_is_no_json_is_left_to_langchain(body):
    assert status_in_body(body) is None
