"""With a key, nothing that people, models or tools said stands in the database in the clear."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest

from replan import Host, Specialist, StorageError, Team, ask_user, open_runtime, open_storage
from replan.log.rows import Attempt, KeptText, Request
from replan.ports.run_book import RunRecord
from replan.ports.session_store import SessionKey, SessionTurn
from replan.sessions import AgentContext, Message
from replan.state.pipeline.threads import Thread, ThreadMessage
from replan.testing import ScriptedModel, always
from stored_tables import dump

ANIMALS = (
    "aardvark",
    "buffalo",
    "cormorant",
    "dromedary",
    "echidna",
    "flamingo",
    "gazelle",
    "hyena",
    "iguana",
    "jackal",
    "koala",
    "lemur",
    "mongoose",
    "narwhal",
    "ocelot",
    "pangolin",
    "quokka",
    "raccoon",
    "salamander",
    "tapir",
    "vicuna",
    "wolverine",
    "wombat",
    "xenops",
    "yellowjacket",
    "zebrafish",
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Words:
    """A word for each who says one, so that each that is found tells who said it."""

    def __init__(self):
        self.by = {}

    def __call__(self, by):
        return self.by.setdefault(by, ANIMALS[len(self.by)])

    def long(self, by):
        """A text that is not stored in the row that it belongs to."""
        return f"{self(by)} " * 200


async def said(where, key):
    """All that storage can hold, each part with a word of its own, which is given."""
    words = Words()
    async with open_storage(where, key=key) as storage:
        await a_run(storage, words)
        await a_failed_attempt(storage.log, words)
        await a_session(storage.sessions, words)
        await an_item(storage.store, words)
        thread = Thread("pipeline", run_id="r")
        text = words("pipeline")
        thread.add(ThreadMessage(id="m", sender="bot", text=text, timestamp=NOON))
        await storage.threads.save_thread(thread)
    return words.by


async def a_run(storage, words):
    """A run that asks, and is answered."""
    question = words("question")
    reply = words.long("long result")

    def work(context):
        return f"{reply} {words('result')} {ask_user(question)}"

    plan = f"- [ ] 1. {words('task')} @a\n"
    thought = f"---\ncomplexity: complex\nreasoning: {words('reasoning')}\n---\n{plan}"
    verdict = f"---\nverdict: complete\nfeedback: {words('feedback')}.\n---\n{words('reply')}."
    with ScriptedModel({"think": always(thought), "feedback": always(verdict)}) as model:
        worker = Specialist(
            name="a", intended_use=f"Works on the {words('prompt')}.", run=work, effects="pure"
        )
        team = Team(host=Host(model=model), specialists=[worker])
        async with open_runtime(team, storage=storage) as runtime:
            run = await runtime.start(words.long("request"), run_id="r")
            assert (await run).outcome == "waiting"
            result = await (await runtime.answer("r", words("answer")))
            assert result.outcome == "completed"
    record = RunRecord(
        run_id="other",
        thread_id="other",
        title=words("title"),
        order={"task": words("order")},
        started_at=NOON,
        updated_at=NOON,
    )
    await storage.runs.begin(record)
    await storage.log.note("r", "decision/1", words("note"))
    asked = Request(run_id="r", name="1", kind="answer", at=NOON, answers={"k": words("asked")})
    await storage.log.add_request(asked)
    event = {"type": "warning", "text": words("event")}
    await storage.log.add_events("r", [event], [KeptText("ref", words("text of an event"), NOON)])
    await storage.log.note("r", "superseded", words("superseded note"))
    await storage.log.strike("r", "superseded")


async def a_failed_attempt(log, words):
    attempt = Attempt(run_id="r", step_id=9, specialist="a", number=1, key="k", started_at=NOON)
    await log.ended(attempt, "failed", NOON, words("error"))


async def a_session(sessions, words):
    before = AgentContext(session_id="s")
    message = Message(role="user", content=words("message"), timestamp=NOON.isoformat())
    after = before.replace(dialogue_history=(message,), project_state={"plan": words("project")})
    turn = SessionTurn(
        turn_id="1",
        at=NOON,
        given="digest",
        title=words("title of a session"),
        stage="done",
        updates=before.updates_to(after),
        result={"response": words("response")},
    )
    await sessions.append(SessionKey("", "anna", "s"), turn, 0)


async def an_item(store, words):
    word = words("item")
    await store.aput(("facts",), "k", {"text": word})
    # What is looked for by words has an index, where there is one.
    assert len(await store.asearch(("facts",), query=word)) == 1


async def test_nothing_that_was_said_can_be_read_without_the_key(where):
    words = await said(where, "a key")
    found = dump(where).lower()
    assert [by for by, word in words.items() if word.encode() in found] == []


async def test_without_a_key_all_of_it_can(where):
    """The search finds what is there, so that the test above can fail."""
    words = await said(where, None)
    found = dump(where).lower()
    assert [by for by, word in words.items() if word.encode() not in found] == []


async def test_what_was_changed_without_the_key_is_noticed(where):
    await said(where, "a key")
    is_postgres = where.startswith("postgresql")
    with closing(psycopg.connect(where) if is_postgres else sqlite3.connect(where)) as connection:
        plain = r"'\x7b7d'" if is_postgres else "x'7b7d'"
        for column in (
            "log SET value",
            "log SET event",
            "texts SET text",
            "runs SET title",
            "items SET value",
        ):
            connection.execute(f"UPDATE replan_{column} = {plain}")
        connection.commit()
    async with open_storage(where, key="a key") as storage:
        for reading in (
            storage.log.notes("r"),
            storage.log.results("r"),
            storage.runs.get("r"),
            storage.log.rows("r"),
            storage.log.events("r"),
            storage.log.text("r", "ref"),
            storage.store.aget(("facts",), "k"),
            storage.store.asearch(("facts",), query="x"),
        ):
            with pytest.raises(StorageError, match="cannot be read"):
                await reading
