"""The sessions of browsers are bounded in number and age, and end with their token."""

from starlette.requests import HTTPConnection

from replan.cli.page.entering import MOST_SESSIONS, Entrance
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens, one_token

OWNER = "the-token-of-the-owner"
DAY = 24 * 3600.0


def request(cookie=""):
    headers = [(b"cookie", cookie.encode())]
    return HTTPConnection({"type": "http", "scheme": "http", "path": "/", "headers": headers})


def entered(entrance):
    answer = entrance.enter(request(), OWNER)
    return request(answer.headers["set-cookie"].partition(";")[0])


class Clock:
    now = 1e9

    def __call__(self):
        return self.now


def entrance_of(clock, tokens=None, **options):
    known = one_token(OWNER, Identity(name="anna")) if tokens is None else tokens
    return Entrance(prefix="", cookie="replan_1", tokens=known, clock=clock, **options)


async def test_the_oldest_session_makes_room_and_every_one_grows_old():
    clock = Clock()
    entrance, sessions = entrance_of(clock), []
    for _ in range(MOST_SESSIONS + 1):
        clock.now += 1
        sessions.append(entered(entrance))
    found = [await entrance.identity_of(each) for each in sessions]
    assert [each and each.name for each in found] == [None, *["anna"] * MOST_SESSIONS]
    clock.now += 31 * DAY
    assert [await entrance.identity_of(each) for each in sessions] == [None] * len(sessions)


async def test_a_session_ends_when_its_token_is_no_more(tmp_path):
    clock, kept = Clock(), tmp_path / "sessions"
    session = entered(entrance_of(clock, kept=kept))
    assert (await entrance_of(clock, kept=kept).identity_of(session)).name == "anna"
    assert await entrance_of(clock, tokens=Tokens({}), kept=kept).identity_of(session) is None
