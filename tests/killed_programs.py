"""The programs that `e2e/test_kills.py` kills; each begins its work, or goes on with it."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

import made_pipelines as pipelines
from kills import Life
from replan import (
    ExecutionContext,
    Host,
    PortableRun,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
    waiting_for,
)
from replan.models.providers.chat_models import LangChainModels
from replan.sessions import AgentContext, ClientAgentAdapter, build_agent
from replan.state.pipeline.threads import Thread
from replan.testing import Reply, ScriptedModel, always
from scripts import END

QUESTIONS = """\
- [ ] 1. Ask @a
- [ ] 2. Ask @a
- [ ] 3. Aside @a
- [ ] 4. After one @a (after 1)
- [ ] 5. After both @a (after 1, 2)
"""
MIXED = "- [ ] 1. Begin @keyed\n- [ ] 2. Work @agent (after 1)\n- [ ] 3. End @keyed (after 2)\n"
PIECES = (
    "---\ncomplexity: complex\nreasoning: Work.\n---\n",
    "- [ ] 1. One @a\n",
    "- [ ] 2. Two @a (after 1)\n",
    "- [ ] 3. Three @a (after 2)\n",
)


def worker(work: Any, **more: Any) -> list[Specialist]:
    return [Specialist("a", "Works.", run=work, effects="pure", **more)]


async def state_of(graph: Any, life: Life, plan: str) -> dict[str, Any]:
    """Begin the run, or go on with it."""
    config: Any = {"configurable": {"thread_id": life.name}}
    is_begun = (await graph.aget_state(config)).created_at is not None
    given = None if is_begun else {"messages": [("user", "Go.")], "plan": plan}
    return (await run(graph, given, config=config, run_id=f"r{life.name}")).state


async def asking(life: Life) -> Any:
    """A run that asks, whose plan is approved, and whose last question is answered first."""

    def work(context: Any) -> str:
        step, inputs = context.plan_step.id, context.inputs.values()
        heard = ask_user(f"question {step}") if step in (1, 2) else " ".join(inputs)
        life.say("ran", step)
        return f"{step}: {heard}"

    def row_of(write: str, given: Any) -> str:
        if write == "finished":
            return f"finished {given[0].step_id}"
        if write != "note" or given[1].startswith("question/"):
            return ""
        return "noted decision" if given[1].startswith("decision/") else f"noted {given[1]}"

    config: Any = {"configurable": {"thread_id": life.name}}
    async with open_storage(life.where) as storage:
        life.watch(storage.log, "started", "ended", "finished", "note", row_of=row_of)
        life.watch(storage.checkpointer, "aput", "aput_writes")
        host = Host(ScriptedModel({"feedback": always(END)}))
        graph = build_graph(Team(host, worker(work), approval="always"), storage=storage)
        state = await state_of(graph, life, QUESTIONS)
        while state["outcome"] == "waiting":
            waiting = waiting_for(state)
            is_plan, key = waiting[0].kind == "plan", waiting[-1].key
            life.say(*(["decided"] if is_plan else ["answered", key]))
            answer = Command(resume={key: "approve" if is_plan else f"answer to {key}"})
            state = (await run(graph, answer, config=config)).state
    texts = {key: result.text for key, result in state["current_specialist_results"].items()}
    asked = {key: question.answer for key, question in state["questions"].items()}
    return {"outcome": state["outcome"], "texts": texts, "asked": asked}


class Told(dict[str, Exception]):
    """Says which handler of a pipeline begins its work."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def __contains__(self, name: object) -> bool:
        self._life.say("ran", name)
        return False


class WatchedThreads:
    """A repository that says what is stored."""

    def __init__(self, inner: Any, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("save_thread", "update_message", "update_thread_settings"):
            return found

        async def written(thread: Thread, *given: Any, **named: Any) -> None:
            before = thread.revision
            await found(thread, *given, **named)
            if thread.revision != before:
                for line in said_by(thread):
                    self._life.say("stored", line)
                self._life.wrote()

        return written


def said_by(thread: Thread) -> Iterator[str]:
    """Yield what the bot of a thread says, and those of its sub-threads, by id and text."""
    yield from (f"{each.id} {each.text}" for each in thread.messages if each.sender == "bot")
    for _, below in thread.sub_threads():
        yield from said_by(below)


async def piping(life: Life) -> Any:
    """A step of a pipeline of four levels."""
    pipelines.failing = Told(life)
    async with open_storage(life.where) as opened:
        storage = replace(opened, threads=WatchedThreads(opened.threads, life))
        host = Host(ScriptedModel({"feedback": always(END)}))
        writer = Specialist("writer", "Writes.", pipeline=pipelines.FourDeep)
        graph = build_graph(Team(host, [writer]), storage=storage)
        state = await state_of(graph, life, "- [ ] 1. hello @writer\n")
        thread = await storage.threads.get_thread(f"r{life.name}/1.0/writer")
    text = state["current_specialist_results"]["1/writer"].text
    return {"text": text, "texts": pipelines.texts(thread), "ids": pipelines.ids(thread)}


async def following(life: Life) -> Any:
    """A second run on a thread, whose caller wants its plan approved."""
    door, plan = life.given, {"plan": "- [ ] 1. Second @a\n"}
    config: Any = {"configurable": {"thread_id": "t"}}
    wanted: Any = {"run_id": "second", "settings": RunSettings(approval="always")}
    team = Team(Host("offline"), worker(lambda context: context.task_description))
    async with open_storage(life.where) as storage, open_runtime(team, storage=storage) as runtime:

        async def begin() -> Any:
            if door == "graph":
                return await run(runtime.graph, plan, config=config, **wanted)
            return await runtime.run(plan, thread_id="t", **wanted)

        if not life.said:
            await runtime.run({"plan": "- [ ] 1. First @a\n"}, run_id="first", thread_id="t")
            life.say("first is over")
            life.watch(runtime.graph.checkpointer, "aput", "aput_writes")
            await begin()
        seen = None if door == "graph" else await runtime.get("second")
        match door:
            case "resume":
                result: Any = await runtime.resume("second")
            case "recover":
                (result,) = (await runtime.resume_interrupted()).resumed
            case _:
                result = await begin()
        return {
            "seen": [seen.outcome, seen.answer] if seen else ["interrupted", ""],
            "ended": [
                result.run_id,
                result.outcome,
                [each.key for each in result.pending_questions],
            ],
        }


async def answering(life: Life) -> Any:
    """A run that ends, and another one on its thread."""
    team = Team(Host("offline"), worker(lambda context: context.task_description))

    def row_of(write: str, args: Any) -> str:
        return "answer" if write == "aput_writes" and "final_answer" in dict(args[1]) else ""

    def given(words: str) -> Any:
        return {"messages": [("user", words)], "plan": f"- [ ] 1. {words} @a\n"}

    async with open_storage(life.where) as storage, open_runtime(team, storage=storage) as runtime:
        life.watch(runtime.graph.checkpointer, "aput", "aput_writes", row_of=row_of)
        if not life.said:
            await runtime.run(given("First"), run_id="first", thread_id="t")
        before = await runtime.get("first")
        second = await runtime.run(given("Second"), thread_id="t")
        after = await runtime.get("first")
    return {
        "ended": [[each.outcome, each.answer] for each in (before, after)],
        "said": [message.type for message in second.state["messages"]],
    }


async def approving_twice(life: Life) -> Any:
    """A run with two rounds, whose plans are approved; it dies behind a checkpoint."""
    more = "---\nverdict: continue\nupdate: More.\n---\n- [x] 1. One @a\n- [ ] 2. Two @a\n"
    model = ScriptedModel({"feedback": always(lambda _: END if "Two" in life.said else more)})

    def work(context: Any) -> str:
        life.say(context.task_description)
        return "done"

    async with open_storage(life.where) as storage:
        team = Team(Host(model), worker(work), approval="always")
        async with open_runtime(team, storage=storage) as runtime:
            life.watch(runtime.graph.checkpointer, "aput")
            if (known := await storage.runs.get("r")) is None:
                await runtime.run({"plan": "- [ ] 1. One @a\n"}, run_id="r")
            elif known.outcome != "waiting":
                await runtime.resume("r")
            while asked := (await runtime.get("r")).pending_questions:
                await (await runtime.answer("r", {asked[0].key: "approve"}))
            events = [event async for event in runtime.events("r")]
    # What a process says of its own work is told for each process.
    own = ("run_stopped", "run_resumed", "specialist_invoked")
    return [each.type for each in events if each.type not in own]


async def leaving(life: Life) -> Any:
    """A run that asks, is exported, and continues elsewhere."""

    def row_of(write: str, args: Any) -> str:
        return "question" if write == "aput_writes" and "questions" in dict(args[1]) else ""

    team = Team(Host("offline"), worker(lambda _: ask_user("Which colour?")))
    async with open_storage(life.where) as storage, open_runtime(team, storage=storage) as here:
        life.watch(here.graph.checkpointer, "aput_writes", row_of=row_of)
        if not life.said:
            await here.run({"plan": "- [ ] 1. Paint @a\n"}, run_id="r")
        asked = (await here.get("r")).pending_questions
        exported = (await here.export("r")).to_json()
    async with open_runtime(team, storage=":memory:") as there:
        await there.adopt(PortableRun.of_json(exported))
        result = await (await there.answer("r", "blue"))
    return [[each.key for each in asked], result.outcome, result.results[1].text]


async def planning(life: Life) -> Any:
    """A run whose first step is done while the host writes the rest of its plan."""
    is_first, ended = not life.said, asyncio.Event()

    class Pausing(ScriptedModel):
        async def _astream(self, messages: Any, *args: Any, **options: Any) -> Any:
            async for chunk in super()._astream(messages, *args, **options):
                if is_first and chunk.text == PIECES[-1]:
                    await ended.wait()
                    life.meets("written")
                yield chunk

    async def work(context: Any) -> str:
        step = context.plan_step.id
        life.say("ran", step)
        life.meets({1: "at work", 3: "in its round"}.get(step, ""))
        return f"done {step}"

    think = always(Reply(text="".join(PIECES), chunks=PIECES))
    model = Pausing({"think": think, "feedback": always(END)})
    async with open_runtime(Team(Host(model), worker(work)), storage=life.where) as runtime:
        log, finish = runtime.storage.log, runtime.storage.log.finished

        async def finished(attempt: Any, *given: Any) -> Any:
            result = await finish(attempt, *given)
            if attempt.step_id == 1:
                life.meets("on record")
                ended.set()
            return result

        log.finished = finished
        result = await (runtime.run("Go.", run_id="r") if is_first else runtime.resume("r"))
        report = await runtime.get("r")
    return {
        "outcome": result.outcome,
        "texts": {key: each.text for key, each in result.results.items()},
        "done": sorted(e.entry.step_id for e in report.attempts if e.outcome == "done"),
        "plans": [call.node for call in model.calls].count("think"),
    }


async def steered(life: Life) -> Any:
    """A run whose plan a person edits, or that is told something, while its first step is done."""
    is_first, at_work, leave = not life.said, asyncio.Event(), asyncio.Event()

    async def work(context: Any) -> str:
        step = context.plan_step.id
        life.say("ran", step, context.task_description)
        if is_first and step == 1:
            at_work.set()
            await leave.wait()
        life.meets({3: "at work", 4: "ahead", 5: "ahead, unsafe"}.get(step, ""))
        return f"done {step}"

    def row_of(write: str, given: Any) -> str:
        if write == "aput":
            return "stored" if "steered" in life.said else ""
        is_steered = write == "note" and given[1].startswith("steer")
        return given[1].partition("/")[0] if is_steered else write

    clerk = Specialist("b", "Works once.", run=work, effects="unsafe")
    team = Team(Host(life.given), [*worker(work), clerk])
    async with open_storage(life.where) as storage, open_runtime(team, storage=storage) as runtime:
        if is_first:
            life.watch(storage.log, "add_request", "note", "take_requests", row_of=row_of)
            life.watch(runtime.graph.checkpointer, "aput", row_of=row_of)
            plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n- [ ] 3. Three @a (after 2)\n"
            going = await runtime.start({"plan": plan}, run_id="r")
            await at_work.wait()
            await steer(life, going)
            leave.set()
            await going
        result = await runtime.resume("r")
        while asked := (await runtime.get("r")).pending_questions:
            life.say(*(f"asked {each.key} {each.kind}" for each in asked))
            result = await (await runtime.answer("r", {asked[0].key: "run again"}))
        statuses = [e.status async for e in runtime.events("r") if e.type == "run_steered"]
        return {
            "outcome": result.outcome,
            "updates": [(each.version, each.by) for each in result.plan.update_history],
            "warnings": len(result.warnings),
            "requests": len(await storage.log.requests(["r"])),
            "statuses": statuses,
        }


async def steer(life: Life, going: Any) -> None:
    if life.given != "offline":
        await going.send_message("Speak German.", by="anna")
        return
    text = (await going.report()).plan.content.replace("Two", "Zwei").replace("Three", "Drei")
    ahead = {"ahead": "- [ ] 4. Vier @a\n", "ahead, unsafe": "- [ ] 5. Fuenf @b\n"}
    text += ahead.get(str(life.moment), "")
    await going.edit_plan(text, version=1, by="anna")
    if life.moment in ahead:
        await asyncio.Event().wait()


def shop(life: Life) -> Team:
    """One who asks and one who buys, with effects outside."""

    def pay(amount: int, idempotency_key: str) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        life.does("pay", idempotency_key)
        return f"paid {amount}"

    def ship(place: str, idempotency_key: str) -> str:
        """Have it shipped.

        Args:
            place: Where to.
        """
        life.does("ship", idempotency_key)
        return f"shipped to {place}"

    def choose(context: ExecutionContext, idempotency_key: str) -> str:
        colour = ask_user("Which colour?")
        life.does("choose", idempotency_key)
        return f"{context.task_description}: {colour}"

    tools: Any = {"tools": [pay, ship], "approve": ["ship"]}
    buyer = Specialist("buyer", "Buys.", chat_model="openai:m", **tools)
    return Team(Host("openai:m"), [Specialist("asker", "Asks.", run=choose), buyer])


def nobody() -> Team:
    return Team(Host(ScriptedModel({})), [Specialist("nobody", "Nothing.", run=lambda _: "")])


def approving(result: Any) -> Any:
    (approval,) = result["metadata"]["questions"]
    decision = {"action": "approve", "fingerprint": approval["fingerprint"]}
    return {approval["key"]: decision}


async def session_in_a_file(life: Life) -> Any:
    """A session whose client keeps the context, and dies between its turns."""
    place = life.folder / "session.json"
    if not place.exists():
        place.write_text(json.dumps([AgentContext(session_id="anna").to_dict(), []]))
    models = LangChainModels(base_url=life.given)
    agent = build_agent(shop(life), context_key="a key that all of them have", models=models)
    said = ("Paint the hall.", "Blue.", "yes", None, "And what is the capital of France?")
    kept, results = json.loads(place.read_text())
    for number, words in enumerate(said[len(results) :], len(results) + 1):
        context = AgentContext.from_dict(kept)
        result = await agent.process(words or approving(results[1]), context)
        kept = context.apply(result.context_updates).to_dict()
        results.append(result.to_dict())
        place.write_text(json.dumps([kept, results], sort_keys=True))
        life.meets(f"turn {number}")
    return [kept, results]


async def session_in_a_store(life: Life) -> Any:
    """A session that the store keeps; a client delivers every turn again, from the first on."""
    agent = build_agent(shop(life), models=LangChainModels(base_url=life.given))
    results: list[Any] = []
    async with open_storage(life.where) as storage:
        client, keep = ClientAgentAdapter(storage, agent, user="anna"), storage.sessions.append
        async with open_runtime(nobody(), storage=storage) as runtime:
            runs = [view.outcome for view in await runtime.runs(labels={"session": "s"})]
        if await client.sessions():
            life.say("sees", *runs, len((await client.history("s")).messages))

        async def append(*given: Any) -> Any:
            life.meets(f"append {len(results) + 1}")
            return await keep(*given)

        storage.sessions.append = append
        for number, words in enumerate(("Paint the hall.", "Blue.", None), 1):
            given = words or approving(results[1])
            result = await client.process("s", given, turn_id=str(number))
            results.append(result.to_dict())
        return [(await client.export("s")).to_dict(), results]


async def stopped_session(life: Life) -> Any:
    """A session whose turn is stopped as soon as it is taken again, and then continues."""

    ends = count(1)

    def row_of(_: str, args: Any) -> str:
        return f"ended {next(ends)}" if "current_specialist_results" in dict(args[2]) else ""

    script = {"think": always("".join(PIECES)), "feedback": always(END)}
    stop, is_first = asyncio.Event(), not life.said

    async def work(context: Any) -> str:
        life.say("ran", context.plan_step.id)
        return f"done {context.plan_step.id}"

    agent = build_agent(Team(Host(ScriptedModel(script)), worker(work)))
    async with open_storage(life.where) as storage:
        client = ClientAgentAdapter(storage, agent, user="anna")
        if is_first:
            # The graph of a session has a copy of its own.
            life.watch(type(storage.checkpointer), "aput_writes", row_of=row_of)
        else:
            stop.set()
        stopped = await client.process("s", "Go.", turn_id="1", stop=stop)
        ended = await client.process("s", None, turn_id="2")
    return [stopped.metadata.get("stage"), stopped.error, ended.metadata.get("stage")]


def effects_of(life: Life, model: ScriptedModel) -> list[Specialist]:
    """Work with effects outside, some of them declared."""

    def keyed(context: ExecutionContext, idempotency_key: str) -> str:
        step = context.plan_step.id
        life.does(f"step-{step}", idempotency_key)
        life.does(f"after-{step}")
        return f"did {step}"

    def unsafe(messages: list[BaseMessage]) -> str:
        life.does("before-unsafe")
        life.does("unsafe")
        return "did it"

    def charge(amount: int, idempotency_key: str) -> str:
        """Charge an amount."""
        life.does("charge", idempotency_key)
        return f"charged {amount}"

    def mail(to: str) -> str:
        """Send a mail."""
        life.does("before-mail")
        life.does("mail")
        return f"wrote to {to}"

    def look() -> str:
        """Look."""
        life.does("look")
        return "looked"

    tools = [charge, mail, StructuredTool.from_function(look, metadata={"effects": "pure"})]
    return [
        Specialist("keyed", "Works.", run=keyed),
        Specialist("unsafe", "Works.", invokable=unsafe),
        Specialist("agent", "Works.", chat_model=model, tools=tools),
    ]


async def doing(life: Life) -> Any:
    """A plan whose work has effects; what is in doubt is asked, and answered with what is given."""
    plan, on_doubt, *answers = life.given

    def reply(messages: Sequence[BaseMessage]) -> AIMessage | str:
        life.say("model")
        heard = [message.text for message in messages if isinstance(message, ToolMessage)]
        if not heard:
            return calling(("charge", {"amount": 5}), ("look", {}))
        return calling(("mail", {"to": "Ann"})) if len(heard) == 2 else "; ".join(heard)

    model = ScriptedModel({"specialist": always(reply), "feedback": always(END)})
    team = Team(Host(model), effects_of(life, model), on_doubt=on_doubt)
    config: Any = {"configurable": {"thread_id": life.name}}
    async with open_storage(life.where) as storage:
        graph = build_graph(team, storage=storage)
        state, asked = await state_of(graph, life, plan), list[str]()
        while questions := waiting_for(state):
            asked.append(questions[0].text)
            answer = Command(resume={questions[0].key: answers.pop(0)})
            state = (await run(graph, answer, config=config)).state
        ledger = await storage.log.ledger(f"r{life.name}")
    results = state["current_specialist_results"].values()
    return {
        "outcome": state["outcome"],
        "texts": {result.key: result.text or result.error for result in results},
        "asked": asked,
        "ledger": [f"{each.step_id} {each.number} {each.outcome}" for each in ledger],
    }


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"c{place}", "type": "tool_call"}
        for place, (name, args) in enumerate(calls)
    ]
    return AIMessage("", tool_calls=made)


def tell(word: str) -> None:
    """Tell the test beside which this works."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def serving(life: Life) -> Any:
    """A service that begins the runs it is given, or else resumes what was left."""
    ids = life.given

    async def work(context: Any, idempotency_key: str = "") -> str:
        name, step = context.task_description, context.plan_step.id
        life.say(name, step, context.idempotency_key)
        if ids and step == 2:
            tell("there")
            await asyncio.Event().wait()
        return f"{name} {step}"

    async def unkeyed(context: Any) -> str:
        return await work(context)

    specialists = [
        Specialist("reader", "Reads.", run=unkeyed, effects="pure"),
        Specialist("sender", "Sends.", run=work),
        Specialist("payer", "Pays.", run=unkeyed, effects="unsafe"),
        Specialist("asker", "Asks.", run=lambda _: ask_user("Which colour?"), effects="pure"),
    ]
    team = Team(Host("offline"), specialists, name="service")
    async with open_runtime(team, storage=life.where, grace=0.01) as runtime:
        if not ids:
            recovery = await runtime.resume_interrupted(at_once=8, by="startup")
            resumed = {
                each.run_id: [each.outcome, *(ask.kind for ask in each.pending_questions)]
                for each in recovery.resumed
            }
            left = {each.run_id: each.reason for each in recovery.left_alone}
            return {"resumed": resumed, "left": left}
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        for run_id in ids:
            kind = run_id.partition("-")[0]
            plan = f"- [ ] 1. {run_id} @reader\n- [ ] 2. {run_id} @{kind} (after 1)\n"
            if kind == "asker":
                plan = f"- [ ] 1. {run_id} @asker\n"
            begun = await runtime.start({"plan": plan}, run_id=run_id)
            if kind == "asker":
                await begun
                tell("there")
        await stopped.wait()
        return None


def two_of_us(work: Any) -> Team:
    """A worker, and a painter who asks."""
    painter = Specialist("painter", "Paints.", run=lambda _: ask_user("Which?"), effects="pure")
    return Team(Host("offline"), [Specialist("worker", "Digs.", run=work, effects="pure"), painter])


async def owning(life: Life) -> Any:
    """A run with a step that never ends, beside one that asks; it tells of the events of a type."""

    async def work(_: object) -> None:
        await asyncio.Event().wait()

    async with open_runtime(two_of_us(work), storage=life.where, grace=0.01) as runtime:
        plan = "- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter\n"
        owned = await runtime.start({"plan": plan}, run_id="r")
        async for event in owned.events():
            if event.type == life.given:
                tell("there")
        return (await owned).outcome
