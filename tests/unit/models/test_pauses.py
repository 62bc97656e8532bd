"""A pause before another attempt is for a server that is busy, and for nothing else."""

import pytest
from tenacity import AsyncRetrying, stop_after_attempt

from replan.models.retries import LONGEST_ASKED, error_raised, pause_if_busy
from replan.testing import HttpFault, ScriptedHttpError


async def pauses_between(errors, first=1.0, longest=3.0):
    """What would be waited between attempts that fail so."""
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    async def attempt():
        raise errors[len(waited)]

    trying = AsyncRetrying(
        wait=pause_if_busy(error_raised, first=first, longest=longest),
        stop=stop_after_attempt(len(errors)),
        sleep=sleep,
        reraise=True,
    )
    with pytest.raises(type(errors[-1])):
        await trying(attempt)
    return waited


@pytest.mark.parametrize(
    "error", [RuntimeError("I cannot"), ValueError("no"), ExceptionGroup("both", [KeyError("a")])]
)
async def test_what_failed_by_its_own_word_is_attempted_again_at_once(error):
    assert await pauses_between([error] * 3) == [0, 0]


async def test_a_busy_server_gets_pauses_that_grow_up_to_a_bound():
    first, second, third = await pauses_between([ConnectionResetError("gone")] * 4)
    assert 1 <= first <= 2 <= second <= 3
    assert third == 3


async def test_a_server_gets_the_pause_that_it_asks_for_within_reason():
    asking = ScriptedHttpError(HttpFault(429, retry_after=7))
    too_long = ScriptedHttpError(HttpFault(429, retry_after=LONGEST_ASKED + 1))
    waited = await pauses_between([asking, too_long, asking])
    assert waited[0] == 7
    assert waited[1] <= 3
