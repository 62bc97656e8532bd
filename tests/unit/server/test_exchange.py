"""What an exchange makes of a request that comes again."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from replan import Host, Limits, Specialist, Team, ask_user, open_storage
from replan.events import AnswerReset, AnswerToken
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens
from replan.server.exchange import Exchange, RequestNames, WaitingRun
from replan.server.served_teams import open_teams
from replan.state.person.answers import shown_in
from replan.testing import ScriptedModel
from scripts import COMPLETE

ANSWER = RequestNames(ids=("m2",))
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


@asynccontextmanager
async def opened(run, host=None, *, limits=None, **options):
    """An exchange with a team of one who does this."""
    member = Specialist("painter", "Paints.", run=run, effects="pure")
    team = Team([member]) if host is None else Team(host, [member], limits=limits or Limits())
    async with (
        open_storage(":memory:") as storage,
        open_teams({"town": team}, storage, Tokens({}), **options) as served,
    ):
        who = Identity(name="eva")
        yield Exchange(served=served, who=who, team="town", door="d", next_key=lambda *_: "c1")


PAINT, RED = RequestNames(history="Paint."), RequestNames(history="Paint. Which? red")


def asked_again(exchange, names=PAINT, text="Paint."):
    return exchange.begin_or_continue("c1", lambda: REQUEST, lambda _: text, names)


async def test_a_request_whose_reply_nobody_got_gets_it_when_it_comes_again():
    done = []
    async with opened(lambda _: done.append(1) or "painted") as exchange:
        left = await asked_again(exchange)
        await left.run
        back = await exchange.wait_for_end(await asked_again(exchange))
        assert (back.report.run_id, back.reply, done) == (left.run.run_id, "painted", [1])
        # It was told now: the same words are a new request.
        anew = await exchange.wait_for_end(await asked_again(exchange))
        assert (anew.report.run_id == left.run.run_id, done) == (False, [1, 1])


async def test_a_question_that_nobody_was_shown_is_shown_to_who_comes_again():
    async with opened(paint) as exchange:
        left = await asked_again(exchange)
        await left.run
        back = await exchange.wait_for_end(await asked_again(exchange))
        assert (back.report.run_id, "Which colour?" in back.reply) == (left.run.run_id, True)


@pytest.mark.parametrize("by", ["", "eva"])
async def test_a_request_whose_run_was_cut_off_continues_it_unless_somebody_stopped_it(by):
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def work(_):
        at_work.set()
        await leave.wait()
        return "painted"

    async with opened(work, grace=0.1) as exchange:
        first = await asked_again(exchange)
        await at_work.wait()
        await first.run.stop(by=by)
        assert "There is no answer" in (await exchange.wait_for_end(first)).reply
        leave.set()
        again = await exchange.wait_for_end(await asked_again(exchange))
        is_same = again.report.run_id == first.run.run_id
        assert (again.reply, is_same) == ("painted", not by)


async def test_what_a_client_was_told_is_gone_with_its_run():
    async with opened(lambda _: "painted") as exchange:
        end = await exchange.wait_for_end(await asked_again(exchange, RequestNames(ids=("m1",))))
        again = await exchange.wait_for_end(await asked_again(exchange, RequestNames(ids=("m1",))))
        assert (again.reply, again.is_repeated) == ("painted", True)
        await exchange.served.storage.runs.remove(end.report.run_id)
        notes = await exchange.served.storage.store.asearch(("replan",))
        assert "painted" not in str(notes)


async def test_another_answer_to_what_a_run_works_on_begins_nothing():
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def wait(_):
        ask_user("Which colour?")
        at_work.set()
        await leave.wait()
        return ask_user("Which size?")

    async with opened(wait) as exchange:
        await exchange.wait_for_end(await exchange.begin(REQUEST))
        blue = await asked_again(exchange, RequestNames(history="blue"), "blue")
        await at_work.wait()
        red = await asked_again(exchange, RED, "red")
        leave.set()
        assert "Which size?" in (await exchange.wait_for_end(blue)).reply
        late = (await exchange.wait_for_end(red)).reply
        assert "worked on another message" in late
        # Who sends it once more has not seen that question either.
        again = await exchange.wait_for_end(await asked_again(exchange, RED, "red"))
        assert (again.is_repeated, "Which size?" in again.reply) == (True, True)
        assert len(await exchange.served.storage.runs.recent(9)) == 1


async def test_a_message_to_a_session_at_work_answers_nothing_that_it_asks_by_then():
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def work(_):
        at_work.set()
        await leave.wait()
        return ask_user("Which colour?")

    async with opened(work) as exchange:

        def said(text):
            names = RequestNames(history=text)
            request = {"messages": [("user", text)]}
            return exchange.begin_or_continue(
                "s", lambda: request, lambda _: text, names, conversation="s"
            )

        first = await said("Paint.")
        await at_work.wait()
        second = await said("Hurry.")
        leave.set()
        asked = (await exchange.wait_for_end(first)).reply
        late = await exchange.wait_for_end(second)
        assert late.reply.endswith(asked)
        assert "worked on another message" in late.reply
        assert "Which colour?" in (await exchange.wait_for_end(await said("Hurry."))).reply


async def test_what_the_host_of_a_run_at_work_is_told_in_vain_is_said_to_be_so():
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def judge(_):
        at_work.set()
        await leave.wait()
        return COMPLETE

    host = Host(ScriptedModel({"feedback": judge}))
    async with opened(lambda _: "Done.", host, limits=Limits(max_model_calls=1)) as exchange:

        def said(text):
            names = RequestNames(history=text)
            request = {"messages": [("user", text)], "plan": "- [ ] 1. Paint @painter\n"}
            return exchange.begin_or_continue(
                "s", lambda: request, lambda _: text, names, conversation="s", tells=lambda: text
            )

        first = await said("Paint.")
        await at_work.wait()
        second = await said("Hurry.")
        assert second.problem == ""
        leave.set()
        assert (await exchange.wait_for_end(first)).reply == "The answer."
        late = await exchange.wait_for_end(second)
    assert late.reply.startswith("The answer.")
    assert "The last message was not used." in late.reply
    assert late.report.warnings


async def test_a_run_that_has_nobody_to_be_told_works_on_and_says_so():
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def work(_):
        at_work.set()
        await leave.wait()
        return "Done."

    async with opened(work) as exchange:

        def said(text):
            names = RequestNames(history=text)
            request = {"messages": [("user", text)]}
            return exchange.begin_or_continue(
                "s", lambda: request, lambda _: text, names, conversation="s", tells=lambda: text
            )

        await said("Paint.")
        await at_work.wait()
        second = await said("Hurry.")
        leave.set()
        late = await exchange.wait_for_end(second)
    assert late.reply.startswith("Done.")
    assert "worked on another message. " in late.reply


class Told:
    """A run whose reply was begun again after some pieces."""

    run_id = "r"

    def __init__(self, run, told):
        self.run, self.told = run, told

    def __await__(self):
        return self.run.__await__()

    async def report(self):
        return await self.run.report()

    async def events(self, **_):
        for event in self.told:
            yield event


async def test_what_follows_a_reply_that_was_begun_again_is_not_said_twice():
    pieces = [AnswerToken(text="pai", run_id="r"), AnswerReset(run_id="r")]
    pieces.append(AnswerToken(text="painted", run_id="r"))
    async with opened(lambda _: "painted today") as exchange:
        begun = await exchange.begin(REQUEST)
        async for part in exchange.parts(replace(begun, run=Told(begun.run, pieces))):
            end = part
        assert (end.streamed, end.rest) == ("painted", " today")


async def test_an_answer_that_comes_too_late_is_told_that_it_was_not_used():
    async with opened(paint) as exchange:
        asks = await exchange.wait_for_end(await exchange.begin(REQUEST))
        shown = WaitingRun(asks.report, shown_in(asks.report.pending_questions))
        blue, red = [await exchange.answer(shown, *said) for said in (("blue",), ("red", RED))]
        assert (await exchange.wait_for_end(blue)).reply == "It is blue."
        late = await exchange.wait_for_end(red)
        assert late.reply.startswith("It is blue.\n\n(The last message was not used.")
        again = await exchange.wait_for_end(await asked_again(exchange, RED, "red"))
        assert again.reply == late.reply
