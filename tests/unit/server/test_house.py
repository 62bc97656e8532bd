"""What a server keeps of whoever calls."""

from contextlib import ExitStack

import pytest

from replan import open_storage
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens
from replan.server.house import MOST_STREAMS, open_house
from replan.server.problems import RefusedError


async def test_a_token_has_so_many_streams_and_takes_none_of_another():
    anna, ben = (Identity(name=name) for name in ("anna", "ben"))
    async with open_storage(":memory:") as storage, open_house({}, storage, Tokens({})) as house:
        with ExitStack() as seats:
            for _ in range(MOST_STREAMS):
                seats.enter_context(house.seat_of(anna))
            with pytest.raises(RefusedError, match="1,000 streams") as raised:
                house.seat_of(anna)
            assert raised.value.problem.status == 429
            seats.enter_context(house.seat_of(ben))
        seats.enter_context(house.seat_of(anna))
