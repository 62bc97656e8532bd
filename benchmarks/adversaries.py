"""Teams that do all they can to keep a run from ending: drawn from a seed, the same every time."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from measure import Measure, measure
from pydantic import PrivateAttr

from replan import (
    Budget,
    ExecutionStatus,
    Host,
    Limits,
    Price,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
)
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.errors import ModelCallError
from replan.graph.build import host_graph
from replan.log.amounts import NOTHING, ROUNDING, Bound, Refused, Reservation, Spending
from replan.log.run_log import RunLog
from replan.models.providers.chat_models import LangChainModels
from replan.plan import PlanDocument, TaskPlan
from replan.prompts.sections import call_of
from replan.state.enhanced import EnhancedState
from replan.state.person.waiting import waiting_for
from replan.state.questions import Question
from replan.state.usage import Usage
from replan.storage.databases.serializer import strict_serializer
from replan.storage.memory_log import MemoryLogs
from replan.testing import ChatRequest, HttpFault, OpenAIServer, Reply, Reset
from replan.views.ahead.preview import (
    USUAL_RETRIES,
    KnownTeam,
    calls_of_question,
    calls_of_reply,
    calls_of_try,
    worst_case_calls,
)

TEAM = ("ann", "bob")
PATIENCE = 0.1
"""Seconds that a try of a step may take; only those that hang take them."""

SUPER_STEPS_PER_ROUND = 6
"""Execution, specialists, collector, feedback, revision, approval."""

SUPER_STEPS_AROUND = 7
"""Thinking, the plan and its approval; answers of a person on the way in and out; the end."""

MOST_ANSWERS = 12
"""How often a person answers before they go away."""

PRICE = Price(input=1, output=4)

TROUBLE = 6
"""One reply in so many is another habit's."""

Say = Callable[[random.Random, int], "str | Exception | AIMessage | None"]
"""A habit: what it says to its n-th question; none: it never answers."""


class RefusedError(Exception):
    """What a server answers, by its status; 501 is that it does not stream."""

    def __init__(self, status: int) -> None:
        self.status_code = status
        super().__init__(f"status {status}")


def _line(chance: random.Random, step: int, before: Sequence[int], *, mark: str = " ") -> str:
    name = chance.choice(["@ann", "@bob", "@ann @bob", "", "@nobody"])
    waits = ", ".join(map(str, chance.sample(before, min(len(before), chance.randint(0, 2)))))
    extra = chance.choice(
        ["", "", "", "optional", "retries 0", "retries 3", "priority 3", "retries 1000000"]
    )
    if before and chance.random() < 0.2:  # noqa: PLR2004 - a share
        extra = f"if {chance.choice(before)} {chance.choice(['failed', 'completed'])}"
    said = "; ".join(part for part in (f"after {waits}" if waits else "", extra) if part)
    return f"- [{mark}] {step}. Do part {step} {name}" + (f" ({said})" if said else "")


_UNNAMED = re.compile(r"(?m)^(- \[.\] \d+\. Do part \d+ )(?!@)")


def dag(chance: random.Random, steps: int, *, first: int = 1) -> str:
    """A plan without cycles."""
    ids = range(first, first + steps)
    return "\n".join(_line(chance, step, list(ids)[:at]) for at, step in enumerate(ids))


def _cycle(chance: random.Random, _: int) -> str:
    steps = chance.randint(2, 5)
    return "\n".join(
        f"- [ ] {step}. Go round @ann (after {step % steps + 1})" for step in range(1, steps + 1)
    )


def _marked(chance: random.Random, _: int) -> str:
    return "\n".join(_line(chance, step, [], mark=chance.choice("x~!-? ")) for step in range(1, 7))


def _bytes(chance: random.Random, _: int) -> str:
    return chance.randbytes(chance.randint(1, 80)).decode("utf-8", "replace")


PLANS: dict[str, Say] = {
    "a plan": lambda chance, _: dag(chance, chance.randint(1, 6)),
    "the same plan": lambda *_: "- [ ] 1. Try @ann\n- [ ] 2. Try again @bob (after 1)",
    "one plan, then the other": lambda _, n: f"- [ ] 1. Do {'AB'[n % 2]} @ann\n- [ ] 2. Go on @bob",
    "endless new steps": lambda chance, n: dag(chance, 2, first=10 + 2 * n),
    "a step for each part": lambda *_: "\n".join(f"- [ ] {i}. Part {i}" for i in range(1, 151)),
    "a cycle": _cycle,
    "unknown specialists": lambda *_: "- [ ] 1. Find @zoe\n- [ ] 2. Tell @yan (after 1, 9)",
    "marks of its own": _marked,
    "prose": lambda *_: "First I would look into it. After that, step 2 follows, and so on.",
}
NOISE: dict[str, Say] = {
    "random bytes": _bytes,
    "nothing": lambda *_: "",
    "half a sentence": lambda chance, _: chance.choice(["---", "{", "```", "- - [x", "---\nver"]),
    "very much": lambda *_: "word " * 60_000,
    "tools that nobody has": lambda _, n: AIMessage(
        "", tool_calls=[{"name": "dig", "args": {}, "id": str(n)}]
    ),
}
TROUBLES: dict[str, Say] = {
    "an error": lambda chance, _: chance.choice([ValueError("no"), RuntimeError("boom")]),
    "a server that is down": lambda chance, _: RefusedError(
        chance.choice([400, 429, 500, 501, 503])
    ),
    "silence": lambda *_: None,
}


def _with(front: str, bodies: Mapping[str, Say]) -> dict[str, Say]:
    def framed(say: Say) -> Say:
        return lambda chance, n: f"---\n{front}\n---\n{say(chance, n)}"

    return {f"{front.splitlines()[0]}, {name}": framed(say) for name, say in bodies.items()}


THINKING = {
    **_with("complexity: complex", PLANS),
    **_with("complexity: simple", {"an answer": lambda *_: "42", "nothing": lambda *_: ""}),
    **NOISE,
    **TROUBLES,
}
JUDGING = {
    **_with("verdict: continue\nupdate: More of it.", PLANS),
    **_with("verdict: complete", {"an answer": lambda *_: "Done.", "nothing": lambda *_: ""}),
    **_with("verdict: continue", {"no word of how": lambda *_: ""}),
    **_with("verdict: perhaps", PLANS),
    **NOISE,
    **TROUBLES,
}
PLANNING = {**PLANS, **NOISE, **TROUBLES}
ANSWERING = {"an answer": lambda *_: "The answer.", **NOISE, **TROUBLES}
WORKING: dict[str, Say] = {
    "a result": lambda *_: "A fact.",
    "a failure": lambda *_: "---\nstatus: failed\n---\nIt did not work.",
    "a failure for good": lambda *_: "---\nstatus: failed\nretry: no\n---\nNo.",
    "half of it": lambda *_: "---\nstatus: partial\n---\nSome of it.",
    "a wish for another plan": lambda *_: "---\nreplan_needed: true\n---\nYes, but.",
    "a tool, again and again": lambda _, n: AIMessage(
        "", tool_calls=[{"name": "look", "args": {"at": str(n)}, "id": f"c{n}"}]
    ),
    **NOISE,
    **TROUBLES,
}
HABITS: Mapping[str, Mapping[str, Say]] = {
    "think": THINKING,
    "plan_creation": PLANNING,
    "feedback": JUDGING,
    "plan_update": PLANNING,
    "final_answer": ANSWERING,
    "direct_answer": ANSWERING,
    "specialist": WORKING,
}


class AdversaryModel(BaseChatModel):
    """Answers out of habit, and now and then out of another one."""

    _chance: random.Random = PrivateAttr()
    _habits: dict[str, str] = PrivateAttr()
    _counts: int | None = PrivateAttr()
    _numbers: Iterator[int] = PrivateAttr(default_factory=count)
    calls: int = 0

    def __init__(
        self, chance: random.Random, habits: dict[str, str], counts: int | None = None
    ) -> None:
        """Prepare a model that counts so many tokens for each character; none: it counts none."""
        super().__init__(cache=False)
        self._chance, self._habits, self._counts = chance, habits, counts

    @property
    def _llm_type(self) -> str:
        return "adversary"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Do as if it cared for tools."""
        return self

    async def said(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Say something, raise, or never answer."""
        self.calls += 1
        call = call_of(messages)
        node = "specialist" if call is None or call.node not in HABITS else str(call.node)
        names = list(HABITS[node])
        own = self._chance.randrange(TROUBLE)
        name = self._habits[node] if own else self._chance.choice(names)
        said = HABITS[node][name](self._chance, next(self._numbers))
        if said is None:
            await asyncio.Event().wait()
        if isinstance(said, Exception):
            raise said
        message = said if isinstance(said, AIMessage) else AIMessage(str(said))
        return message.model_copy(update={"usage_metadata": self._usage(messages, message)})

    def _usage(self, messages: Sequence[BaseMessage], reply: AIMessage) -> UsageMetadata | None:
        if self._counts is None:
            return None
        read = self._counts * sum(len(each.text) for each in messages)
        written = self._counts * len(reply.text)
        return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=await self.said(messages))])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = await self.said(messages)
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                said.content,
                tool_calls=said.tool_calls,
                id=said.id,
                usage_metadata=said.usage_metadata,
            )
        )


@dataclass
class Wire:
    """Puts a model behind an HTTP server, so that a real client asks it, and tries again.

    Attributes:
        model: Answers every request that arrives, and counts them.
    """

    model: AdversaryModel

    async def __call__(self, request: ChatRequest) -> Reply:
        """Answer one request, or fail as servers do."""
        try:
            said = await self.model.said(request.messages)
        except RefusedError as error:
            return Reply(fault=HttpFault(error.status_code, retry_after=0.0))
        except Exception:  # noqa: BLE001 - whatever the habit raises
            return Reply("Half of it", fault=Reset(1))
        return Reply(said.text, tool_calls=said.tool_calls, chunks=(said.text,))


def look(at: str) -> str:
    """Look at something."""
    return f"{at}: look at the next one"


@dataclass(frozen=True)
class Adversary:
    """One team and what it is asked to do, all from one seed.

    Attributes:
        seed: What everything is drawn from.
        config: The team.
        model: The model of the host, and of specialists that have one.
        retries: Further calls of one reply, where a client asks the model.
        given: The input of the run.
        plan: The plan that is handed in, or none.
        habits: What it does, for people.
        chance: Where the person's answers are drawn from.
    """

    seed: int
    config: Team
    model: AdversaryModel
    retries: int
    given: dict[str, Any]
    plan: TaskPlan | None
    habits: Mapping[str, str]
    chance: random.Random

    def person(self, waiting: tuple[Question, ...]) -> Any:
        """What the person says to a plan or to questions: now and then something that fits."""
        nonsense = ["", "??", 7, [], {}, {"9/zoe/9": "x"}, {"action": "dance"}, True, "- [ ] x"]
        if self.chance.random() < 0.4:  # noqa: PLR2004 - a share
            return self.chance.choice(nonsense)
        if waiting[0].kind == "plan":
            more = dag(self.chance, 2, first=self.chance.randint(20, 90)).replace("@nobody", "")
            words: list[Any] = ["approve", "reject", {"action": "reject", "reason": "Not so."}]
            edited = {"action": "edit", "plan": f"{waiting[0].text}\n{more}"}
            return {waiting[0].key: self.chance.choice([*words, edited])}
        answered = self.chance.sample(waiting, self.chance.randint(1, len(waiting)))
        return {question.key: "That one." for question in answered}


def adversary(
    seed: int, serve: Callable[[AdversaryModel], BaseChatModel] | None = None
) -> Adversary:
    """Draw a team.

    Args:
        seed: What it is drawn from.
        serve: Puts its model behind a client, and gives what the team asks in its place.
    """
    chance = random.Random(seed)  # noqa: S311 - the same draw on every run, no secret
    habits = {node: chance.choice(list(kinds)) for node, kinds in HABITS.items()}
    # A server answers in a thread of its own, with a chance of its own.
    # Its own chance, so that what else is drawn does not depend on tokens and money.
    amounts = random.Random(f"amounts {seed}")  # noqa: S311 - as above
    counts, max_cost = amounts.choice([None, 1, 5]), amounts.choice([None, None, 0.05])
    model = AdversaryModel(random.Random(-seed) if serve else chance, habits, counts)  # noqa: S311 - as above
    asked = serve(model) if serve else model
    workers = {name: chance.choice(["chat", "tools", *_FUNCTIONS]) for name in TEAM}
    calls = chance.choice(["merged", "separate"])
    # Of a plan that is handed in, each step must name somebody who is there.
    document = dag(chance, chance.randint(1, 6)).replace("@nobody", "@ann")
    document = _UNNAMED.sub(r"\1@ann", document)
    is_handed = chance.random() < 0.4  # noqa: PLR2004 - a share
    limits = Limits(
        max_rounds=chance.randint(1, 8),
        max_steps=chance.choice([3, 10, 100]),
        max_model_calls=chance.choice([1, 2, 5, 40, 200]),
        max_parallel_steps=chance.choice([1, 3, 16]),
        max_stalls=chance.randint(1, 3),
        max_tokens=chance.choice([None, None, 20_000, 3_000]),
        max_cost=max_cost,
        max_seconds=chance.choice([None, None, None, 0.4]),
        per_step=chance.choice([Budget(), Budget(max_model_calls=2), Budget(max_seconds=0.2)]),
        step_timeout=PATIENCE,
        step_retries=chance.randint(0, 2),
    )
    config = Team(
        host=Host(model=asked),
        specialists=[_worker(name, kind, asked, chance) for name, kind in workers.items()],
        limits=limits,
        round_scope=chance.choice(["plan", "ready", "step"]),
        on_failure=chance.choice(["finish", "halt"]),
        calls=calls,
        allow_dynamic_update=chance.random() < 0.8,  # noqa: PLR2004 - a share
        approval=chance.choice(["never", "never", "plan", "revisions", "always"]),
        prices={"AdversaryModel": PRICE, "m": PRICE},
    )
    given = {"messages": [("user", "Do the work.")], **({"plan": document} if is_handed else {})}
    return Adversary(
        seed=seed,
        config=config,
        model=model,
        retries=USUAL_RETRIES if serve else 0,
        given=given,
        plan=PlanDocument.parse(document).plan if is_handed else None,
        habits={**habits, **workers},
        chance=chance,
    )


def _worker(name: str, kind: str, model: BaseChatModel, chance: random.Random) -> Specialist:
    if kind in _FUNCTIONS:
        work = _FUNCTIONS[kind]

        async def run(_: Any) -> Any:
            return await work(chance)

        return Specialist(name=name, intended_use="Works.", run=run)
    tools = [look] if kind == "tools" else []
    return Specialist(
        name=name, intended_use="Works.", chat_model=model, tools=tools, max_tool_rounds=4
    )


async def _some_status(chance: random.Random) -> SpecialistResult:
    return SpecialistResult(
        status=chance.choice(list(ExecutionStatus)), retry=chance.choice([True, False])
    )


async def _replans(_: random.Random) -> SpecialistResult:
    return SpecialistResult(result=AIMessage("Yes, but."), replan_needed=True)


async def _raises(chance: random.Random) -> Any:
    raise chance.choice([ValueError("no"), SystemExit(3), ExceptionGroup("all", [OSError("x")])])


async def _hangs(_: random.Random) -> Any:
    await asyncio.Event().wait()


async def _talks(chance: random.Random) -> Any:
    return chance.choice(["A fact.", "", "word " * 60_000, None, 7, {"a": 1}, object()])


async def _asks_for_ever(_: random.Random) -> Any:
    for number in range(1, 1_000):
        ask_user(f"Question {number}?")


async def _asks_once(_: random.Random) -> Any:
    return f"You said {ask_user('Which one?')}."


_FUNCTIONS = {
    "any status": _some_status,
    "asks for another plan": _replans,
    "raises": _raises,
    "hangs": _hangs,
    "says anything": _talks,
    "asks forever": _asks_for_ever,
    "asks once": _asks_once,
}


@dataclass
class Ended:
    """How a run ended, and what was seen on the way.

    Attributes:
        state: The final state; empty if the run was refused before it had a plan.
        refused: The error of a host that could not think at all.
        measures: What was left at each judgement, the plan's version, and how many rounds a
            person's answers had given back.
        answers: How often a person answered.
        is_left: Whether the person went away with something still to answer.
        super_steps: The most that LangGraph took without a person in between.
        calls: Model calls, counted by the model.
        bound: The most that the run could make.
        left_over: Tasks that were still there when the run was over.
        spent: What the log charged, reservations in full.
        beyond: What calls used beyond their reservations, as the log has it.
    """

    state: EnhancedState = field(default_factory=EnhancedState)
    refused: ModelCallError | None = None
    measures: list[tuple[Measure, int, int]] = field(default_factory=list)
    answers: int = 0
    is_left: bool = False
    super_steps: int = 0
    calls: int = 0
    bound: int = 0
    left_over: int = 0
    spent: Spending = NOTHING
    beyond: Spending = NOTHING

    def faults(self, limits: Limits) -> list[str]:
        """What must not be, in words; empty if all is well."""
        state, found = self.state, list[str]()
        found += [f"{self.calls} calls, at most {self.bound}"] if self.calls > self.bound else []
        found += [f"{self.left_over} tasks left over"] if self.left_over else []
        found += [*self._spent_too_much(limits)]
        found += [
            f"{before} did not fall to {later}"
            for (before, version, said), (later, newer, more) in pairwise(self.measures)
            if not before.falls_to(later, revised=newer != version, answers=more - said)
        ]
        if self.refused is not None:
            return found if not self.measures else [*found, "it gave up in the middle"]
        if self.is_left:
            return found
        answer = state.get("final_answer")
        is_over = state.get("is_completed") and answer is not None and answer.text.strip()
        found += [] if is_over else ["there is no answer"]
        outcomes = {"answered", "completed", "partial", "failed", "rejected"}
        found += [] if state.get("outcome") in outcomes else ["there is no outcome"]
        rounds = state.get("current_round", 0)
        found += [f"{rounds} rounds"] if rounds > limits.max_rounds + self.answers else []
        most = SUPER_STEPS_PER_ROUND * limits.max_rounds + SUPER_STEPS_AROUND + 1
        found += [f"{self.super_steps} super-steps"] if self.super_steps > most else []
        used = state.get("usage", Usage()).calls
        # A call that runs out of time before it reaches the model was reserved all the same.
        return found + ([f"{used} calls counted, {self.calls} made"] if used < self.calls else [])

    def _spent_too_much(self, limits: Limits) -> Iterator[str]:
        if self.spent.calls > limits.max_model_calls:
            yield f"{self.spent.calls} calls charged, at most {limits.max_model_calls}"
        for kind in ("tokens", "cost"):
            most, spent = getattr(limits, f"max_{kind}"), getattr(self.spent, kind)
            beyond = getattr(self.beyond, kind)
            if most is not None and spent > most + beyond + ROUNDING:
                yield f"{spent} {kind}, at most {most} and {beyond} beyond what was reserved"


class Charges(RunLog):
    """A log in memory that adds up what is charged in it."""

    def __init__(self) -> None:
        super().__init__(MemoryLogs())
        self.beyond = NOTHING
        self._settled = NOTHING
        self._reserved: dict[str, Spending] = {}

    @property
    def spent(self) -> Spending:
        """What is charged, reservations in full."""
        return sum(self._reserved.values(), self._settled)

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        """Charge an amount."""
        refused = await super().reserve(reservation, bounds)
        if refused is None:
            self._reserved[reservation.id] = reservation.amount
        return refused

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        """Replace it by what was used."""
        await super().settle(reservation, used)
        if self._reserved.pop(reservation.id, None) is not None:
            self._settled += used
            self.beyond += used.beyond(reservation.amount)


def play(seed: int) -> Ended:
    """Run the team of a seed to its end, in an event loop of its own."""
    return asyncio.run(_play(adversary(seed)))


def play_over_http(seed: int) -> Ended:
    """Do the same with a model that a real client asks, so that its further tries count too."""
    with ExitStack() as stack:

        def serve(model: AdversaryModel) -> BaseChatModel:
            server = stack.enter_context(OpenAIServer(Wire(model), models=("m",)))
            return LangChainModels(base_url=server.base_url).chat_model("openai:m")

        return asyncio.run(_play(adversary(seed, serve)))


async def _play(one: Adversary) -> Ended:
    config, ended = one.config, Ended()
    charges = Charges()
    services = services_of(config, models_from_environment())
    services = replace(services, retry_wait=0.0, log=charges)
    saver = InMemorySaver(serde=strict_serializer())
    graph: Any = host_graph(services).compile(checkpointer=saver)
    ended.bound = _bound(one)
    given: Any = one.given
    try:
        while given is not None:
            await _played(graph, given, one, ended)
            given = _answer(one, ended)
    except ModelCallError as error:
        ended.refused = error
    ended.calls, ended.spent, ended.beyond = one.model.calls, charges.spent, charges.beyond
    await asyncio.sleep(0)
    ended.left_over = len(asyncio.all_tasks()) - 1
    return ended


async def _played(graph: Any, given: Any, one: Adversary, ended: Ended) -> None:
    options = {"configurable": {"thread_id": "t"}}
    is_judged, super_steps = False, 0
    async for mode, part in graph.astream(given, options, stream_mode=["updates", "values"]):
        if mode == "values":
            ended.state = part
            super_steps += 1
            if is_judged:
                version = part["current_plan"].version
                given_back = part["max_rounds"] - one.config.limits.max_rounds
                ended.measures.append((measure(part), version, given_back))
            is_judged = False
        else:
            is_judged |= "feedback" in part
    ended.super_steps = max(ended.super_steps, super_steps)


def _answer(one: Adversary, ended: Ended) -> Any:
    """What the person says, if anything waits for them: often nonsense, and not forever."""
    waiting = ended.state.get("__interrupt__")
    if not waiting:
        return None
    if ended.answers >= MOST_ANSWERS:
        ended.is_left = True
        return None
    ended.answers += 1
    return Command(resume=one.person(waiting_for(waiting)))


def _bound(one: Adversary) -> int:
    """What is printed before a run; a plan that is not there yet can be any."""
    limits = one.config.limits
    if one.plan is None:
        return limits.max_model_calls
    reply = calls_of_reply(one.retries)
    per_try = {
        each.name: None if each.tools else calls_of_try(reply) if each.chat_model else 0
        for each in one.config.specialists
    }
    known = KnownTeam(
        limits=limits,
        revisable=one.config.allow_dynamic_update,
        per_try=per_try,
        per_question=calls_of_question(one.retries),
    )
    return worst_case_calls(one.plan, known, merged=one.config.calls == "merged")
