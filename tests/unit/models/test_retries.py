"""More attempts are tenacity's, and the first one counts among them."""

import pytest
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from replan.models.retries import retried


def of(*outcomes):
    """An attempt that has these outcomes in turn, and the list of those that are left."""
    left = list(outcomes)

    async def attempt():
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return attempt, left


def upon_errors():
    return AsyncRetrying(
        retry=retry_if_exception_type(OSError), stop=stop_after_attempt(3), reraise=True
    )


@pytest.mark.parametrize("before", [1, 2])
async def test_what_fails_is_attempted_again(before):
    attempt, left = of(*[OSError("busy")] * (before - 1), "done")
    assert await retried(attempt, upon_errors(), OSError("busy")) == "done"
    assert left == []


async def test_an_error_that_the_loop_does_not_retry_is_raised_as_it_came():
    error = ValueError("wrong")
    attempt, left = of("never")
    with pytest.raises(ValueError, match="wrong") as caught:
        await retried(attempt, upon_errors(), error)
    assert caught.value is error
    assert left == ["never"]
