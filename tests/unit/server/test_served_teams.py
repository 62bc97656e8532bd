"""What a server keeps of whoever calls."""

from contextlib import ExitStack

import pytest

from replan import Host, Specialist, Team, build_graph, open_runtime, open_server, open_storage
from replan.errors import ConfigurationError
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens
from replan.server.problems import RefusedError
from replan.server.served_teams import MOST_STREAMS, open_teams


async def test_a_token_has_so_many_streams_and_takes_none_of_another():
    anna, ben = (Identity(name=name) for name in ("anna", "ben"))
    async with open_storage(":memory:") as storage, open_teams({}, storage, Tokens({})) as served:
        with ExitStack() as seats:
            for _ in range(MOST_STREAMS):
                seats.enter_context(served.stream_seat(anna))
            with pytest.raises(RefusedError, match="1,000 streams") as raised:
                served.stream_seat(anna)
            assert raised.value.problem.status == 429
            seats.enter_context(served.stream_seat(ben))
        seats.enter_context(served.stream_seat(anna))


async def test_a_graph_without_storage_is_refused_before_a_run_begins_that_nobody_could_answer():
    asker = Specialist(name="asker", intended_use="Asks.", run=lambda _: "asked")
    team = Team(host=Host(model="offline"), specialists=[asker])
    for opened, field in (
        (open_server({"house": build_graph(team)}), "teams.house"),
        (open_runtime(build_graph(team), storage=":memory:"), "team"),
    ):
        with pytest.raises(ConfigurationError, match="storage=storage") as raised:
            async with opened:
                pass
        assert raised.value.field == field
    async with (
        open_storage(":memory:") as storage,
        open_server({"house": build_graph(team, storage=storage)}, storage=storage) as address,
    ):
        assert address.token
