"""What an exchange makes of a request that comes again."""

from datetime import UTC, datetime

import pytest

from replan import Specialist, Team, ask_user, open_storage
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens
from replan.server.exchange import Exchange, Names
from replan.server.served_teams import open_teams

ANSWER = Names(ids=("m2",))
REQUEST = {"messages": [("user", "Paint the hall.")]}


def paint(_):
    return f"It is {ask_user('Which colour?')}."


class Clock:
    """A clock that breaks once, when it is told to."""

    def __init__(self):
        self.is_broken = False

    def __call__(self):
        if self.is_broken:
            self.is_broken = False
            raise RuntimeError("the clock is broken")
        return datetime.now(UTC)


async def said(exchange, text, clock=None):
    def answers(_):
        if clock is not None:
            clock.is_broken = True
        return text

    return await exchange.begin_or_continue("c1", lambda: REQUEST, answers, ANSWER)


async def test_an_answer_counts_once_and_one_that_was_cut_off_counts_when_it_comes_again():
    clock, team = Clock(), Team([Specialist("painter", "Paints.", run=paint, effects="pure")])
    async with (
        open_storage(":memory:") as storage,
        open_teams({"town": team}, storage, Tokens({}), clock=clock) as served,
    ):
        exchange = Exchange(
            served=served, who=Identity(name="eva"), team="town", door="d", next_key=lambda *_: "c1"
        )
        begun = await exchange.begin(REQUEST)
        assert "Which colour?" in (await exchange.wait_for_end(begun)).reply
        with pytest.raises(RuntimeError, match="broken"):
            await said(exchange, "blue", clock)
        # Nothing of it is on record but that it came.
        end = await exchange.wait_for_end(await said(exchange, "blue"))
        assert (end.reply, end.is_repeated) == ("It is blue.", False)
        again = await exchange.wait_for_end(await said(exchange, "red"))
        assert (again.reply, again.is_repeated) == ("It is blue.", True)
