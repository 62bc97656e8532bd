"""A team that is asked on a page: what its models say stands there, and what becomes of it.

A page is as `transcripts.py` says. `$ ask TEXT` asks a team, whose host and chat specialists follow
the `replies` of the session; a `plan.md` of the session goes with it, or another file, `< FILE`. A
`team` block has options of the team (`host`: those of its host, `settings`: those of the run) and
`members`: their cards, for specialists that are functions, and for a chat model `chat: true`. What
a function does is its task, but for what `does` has for a step, by its number (`1`, `1/name`) or
its text: a text, or what `_done` knows; of a list, the first entry at first. `knowledge` is what
each search finds: chunks, or what it `returns` or `raises`, or `hangs`. Further commands:

    $ answer TEXT           answers what is asked; also YAML, and what a file of the session has
    $ resume TEXT           the same as LangGraph's own resumption, which names nothing
    $ ask TEXT with {...}   asks with answers that are handed in
    $ go on                 calls the graph again without a word
    $ shown NAME NAME       what the interrupt shows of what is asked
    $ prompt NODE 2 | grep  a part of what the second call of a node was told
    $ state NAME NAME       what the state has, and `document` that of its plan

Below an `ask` and an `answer` stand the calls of the host (with what it was told, if it was asked
again), the results of steps, and what else happened.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import yaml
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from replan import (
    Budget,
    Host,
    InputError,
    Limits,
    MemoryOptions,
    Price,
    RAGOptions,
    RunSettings,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
    build_graph,
    stream,
)
from scripts import THREAD
from states import said
from transcripts import BLOCK, error_of, part_of, reply_of
from two_ways import calls_of

COMPLAINT = 200
_DEFAULT = {"payer": {"intended_use": "Pays invoices."}}
_CHAT = {"researcher": "Finds facts.", "analyst": "Compares things."}
_CREATED = re.compile(r', "created_at": "[^"]*"')
_YAML, _WORDS = "{[0123456789'", ("true", "null")


class Asked:
    """A session of a page: its files, and a team once somebody asks it."""

    def __init__(self, above: str, section: str) -> None:
        found = BLOCK.findall(above) + BLOCK.findall(section)
        self.files = {kind: text for _, kind, text in found if kind.endswith(".md")}
        self.options: dict[str, Any] = {}
        replies: dict[str, Any] = {}
        for _, kind, text in found:
            self.options |= yaml.safe_load(text) if kind == "team" else {}
            replies |= yaml.safe_load(text) if kind == "replies" else {}
        self.script = {key: reply_of(told) for key, told in replies.items()}
        commands = [line for _, kind, text in found if kind == "console" for line in _typed(text)]
        self._is_kept = len(commands) > 1
        settings = self.options.pop("settings", {})
        self._settings = RunSettings(**_made(settings)) if settings else None
        self._config: Any = THREAD if self._is_kept else None

    async def carry_out(self, section: str, model: Any) -> str:
        """The session with what becomes of it now."""
        self._model, self._graph = model, self._built(model)
        parts, end = [], 0
        for block in BLOCK.finditer(section):
            fence, kind, text = block.groups()
            if kind == "console":
                told = [
                    line for typed in _typed(text) for line in [typed, *await self._told(typed)]
                ]
                text = "".join(f"{line}\n" for line in told)
            parts += [section[end : block.start()], f"{fence}{kind}\n{text}{fence}"]
            end = block.end()
        return "".join([*parts, section[end:]])

    def _built(self, model: Any) -> Any:
        options = dict(self.options)
        chat = getattr(model, "chat", model)
        members = options.pop("members", _DEFAULT)
        does, times = options.pop("does", {}), Counter[Any]()
        if members == _DEFAULT:
            members = members | {
                name: {"intended_use": use, "chat": True} for name, use in _CHAT.items()
            }
        team = [
            _member(name, dict(card), _working(name, does, times), chat)
            for name, card in members.items()
        ]
        host = Host(chat, **options.pop("host", {}))
        prices = {name: Price(**price) for name, price in options.pop("prices", {}).items()}
        found = options.pop("knowledge", None)
        knowledge = None if found is None else _Found(found)
        config = Team(host, team, prices=prices, knowledge=knowledge, **_made(options))
        return build_graph(config, checkpointer=InMemorySaver() if self._is_kept else None)

    async def _told(self, typed: str) -> list[str]:
        """What a command is answered."""
        command, *parts = typed.removeprefix("$ ").split(" | ")
        word, _, text = command.partition(" ")
        if word in ("prompt", "shown", "state"):
            told = await self._looked(word, text.split())
        else:
            told = await self._followed(await self._given(word, text))
        for part in parts:
            told = part_of("".join(f"{line}\n" for line in told), part).splitlines()
        return told

    async def _given(self, word: str, text: str) -> Any:
        """What the graph is given."""
        match word:
            case "ask":
                return self._request(text)
            case "answer":
                return await said(self._graph, self._meant(text), THREAD)
            case "resume":
                return Command(resume=self._meant(text))
        return None

    async def _looked(self, word: str, names: list[str]) -> list[str]:
        if word == "prompt":
            return self._prompt(*names)
        state = await self._graph.aget_state(THREAD)
        if word == "shown":
            (interrupted,) = state.interrupts
            return [f"{name}: {json.dumps(interrupted.value[name])}" for name in names]
        return [line for name in names for line in _shown(state.values, name)]

    def _request(self, text: str) -> dict[str, Any]:
        text, _, answers = text.partition(" with ")
        text, _, file = text.partition(" < ")
        plan = self.files.get(file or "plan.md")
        given: dict[str, Any] = {"messages": [("user", text)]}
        given |= {} if plan is None else {"plan": plan}
        return given | ({"answers": yaml.safe_load(answers)} if answers else {})

    def _meant(self, text: str) -> Any:
        meant = yaml.safe_load(text) if text[:1] in _YAML or text in _WORDS else text
        if isinstance(meant, dict):
            return {name: self.files.get(str(each), each) for name, each in meant.items()}
        return self.files.get(str(meant), meant)

    def _prompt(self, node: str, number: str = "1") -> list[str]:
        calls = [call for call in calls_of(self._model) if call.node == node]
        messages = calls[int(number) - 1].messages
        return [line for message in messages for line in message.text.splitlines() if line.strip()]

    async def _followed(self, given: Any) -> list[str]:
        """What becomes of something that the graph is given."""
        before = len(calls_of(self._model))
        followed = stream(self._graph, given, config=self._config, settings=self._settings)
        try:
            events = [event async for event in followed]
        except InputError as refused:
            return [f"refused: {refused}"]
        made = calls_of(self._model)[before:]
        if not events:
            return await self._still_asked()
        return [*_calls(made, events), *_results(made, events), *_end(events)]

    async def _still_asked(self) -> list[str]:
        asked = (await self._graph.aget_state(THREAD)).interrupts
        questions = [each for one in asked for each in one.value["questions"]]
        return [
            f"still asks {each['key']}: {each.get('problem', '')}".rstrip() for each in questions
        ]


def _working(
    name: str, does: dict[Any, Any], times: Counter[Any]
) -> Callable[[Any], Awaitable[Any]]:
    """A function that does what a page has for a step, or else its task."""

    async def work(context: Any) -> Any:
        step, task = context.plan_step.id, context.task_description
        keys = [f"{step}/{name}", step, task]
        key = next((each for each in keys if each in does), task)
        done = does.get(key, f"{task} is done")
        times[key] += 1
        if isinstance(done, list):
            done = done[min(times[key], len(done)) - 1]
        if done == "what it knows":
            return context.knowledge_context
        inputs = "; ".join(f"{number}: {text}" for number, text in context.inputs.items())
        return await _done(done, f" ({inputs})" if inputs else "")

    return work


async def _done(does: Any, inputs: str) -> Any:
    match does:
        case {"asks": _} | {"interrupts": _}:
            return f"heard {_heard(**does)}{inputs}"
        case {"raises": error}:
            raise error_of(error)
        case "hangs":
            await asyncio.Event().wait()
        case dict():
            return _result(does, inputs)
    return f"{does}{inputs}"


class _Found:
    """A retriever that finds what a page has."""

    def __init__(self, found: Any) -> None:
        self._found = found

    async def search(self, _: Any) -> Any:
        match self._found:
            case list(chunks):
                return {"chunks": chunks}
            case {"returns": value}:
                return value
            case other:
                return await _done(other, "")


def _heard(asks: str | list[str] = "", interrupts: str = "", choices: Any = None) -> str:
    """What a person answers; of a list, one question after the other is asked."""
    if interrupts:
        return str(interrupt(interrupts))
    asked = asks if isinstance(asks, list) else [asks]
    return " and ".join(str(ask_user(each, choices)) for each in asked)


def _result(does: dict[str, Any], inputs: str) -> SpecialistResult:
    match does:
        case {"fails": error}:
            return SpecialistResult(status="failed", error=error, retry=does.get("retry", False))
        case {"half": text}:
            return SpecialistResult(status="partial", result=AIMessage(f"{text}{inputs}"))
    text = does["wants a revision"]
    result = None if text is None else AIMessage(f"{text}{inputs}")
    return SpecialistResult(result=result, replan_needed=True)


def _member(name: str, card: dict[str, Any], work: Any, chat: Any) -> Specialist:
    way: dict[str, Any] = {"chat_model": chat} if card.pop("chat", False) else {"run": work}
    way |= {"limits": Budget(**card.pop("limits"))} if "limits" in card else {}
    return Specialist(name, **way | _made(card))


def _made(options: dict[str, Any]) -> dict[str, Any]:
    """The options with objects for what a page has as fields."""
    kinds: dict[str, Any] = {"limits": Limits, "rag": RAGOptions, "memory": MemoryOptions}
    return options | {name: kinds[name](**options[name]) for name in kinds.keys() & options.keys()}


def _typed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("$ ")]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= COMPLAINT else f"{text[:COMPLAINT]}…"


def _shown(state: Any, name: str) -> list[str]:
    if name == "document":
        return state["current_plan"].content.splitlines()
    return [f"{name}: {_at(state, name)}"]


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value[name]
        else:
            value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


def _calls(made: list[Any], events: list[Any]) -> list[str]:
    """The calls of the host, in their order."""
    asked = [event for event in events if event.type == "model_invoked" and event.step_id is None]
    asked = [event for event in asked if event.node != "knowledge"]
    own = [call for call in made if call.step is None and call.node != "knowledge"]
    told = [
        f", again: {_shortened(call.messages[-1].text)}" if event.is_reprompt else ""
        for event, call in zip(asked, own, strict=True)
    ]
    return [f"{event.node}{again}" for event, again in zip(asked, told, strict=True)]


def _results(made: list[Any], events: list[Any]) -> list[str]:
    """The results of steps, with what the specialists were told that were asked again."""
    lines = list[str]()
    done = [event for event in events if event.type == "specialist_completed"]
    for event in sorted(done, key=lambda event: (event.round, event.step_id, event.specialist)):
        step = f"step {event.step_id} {event.specialist}"
        prompts = [call.messages[-1].text for call in made if call.step == event.step_id]
        told = [prompt for prompt in prompts if not prompt.startswith(("<", "What the team's"))]
        lines += [f"{step}, again: {_shortened(prompt)}" for prompt in told]
        text = event.result.error or event.result.marked_text
        counted = f" ({len(prompts)} calls)" if len(prompts) > 1 else ""
        counted = counted or (f" (attempt {event.attempt})" if event.attempt > 1 else "")
        counted += f" from {_places(event.result.sources)}" * bool(event.result.sources)
        lines.append(f"{step}, {event.status}{counted}: {_shortened(text)}")
    return lines


def _end(events: list[Any]) -> list[str]:
    lines = [line for event in events for line in _happened(event)]
    plans = [event.plan for event in events if event.type in ("plan_created", "plan_updated")]
    written = plans[-1].content.splitlines() if plans else ()
    steps = [line for line in written if line.lstrip().startswith("- [")]
    lines += [f"{line} (version {plans[-1].version})" for line in steps]
    last = events[-1]
    if last.type != "task_completed":
        return lines
    rounds = f" after {last.round} rounds" if last.round > 1 else ""
    lines.append(f"{last.outcome}{rounds}: {_shortened(last.answer.text)}")
    reset = max([at for at, event in enumerate(events) if event.type == "answer_reset"], default=0)
    streamed = "".join(event.text for event in events[reset:] if event.type == "answer_token")
    if streamed != last.answer.text:
        lines.append(f"streamed: {_shortened(streamed)}".strip())
    return lines + [f"warning: {each}" for each in last.warnings]


def _happened(event: Any) -> list[str]:
    """What an event tells that no other line has."""
    if event.type == "plan_parse_warning":
        return [f"line {each.line}, as text: {each.text}" for each in event.parse_warnings]
    if event.type == "approval_requested":
        asked = event.question
        lines = [f"asks about the plan: {_shortened(event.reason)}"]
        return lines + asked.details["changes"].splitlines()
    if event.type == "knowledge_retrieved":
        who = f"step {event.step_id}" if event.step_id else "the host"
        lines = [f"{who} is given {_places(event.sources) or 'nothing'}"]
        for name in ("skipped", "unused", "failed"):
            lines += [f"{name}: {each}" for each in getattr(event, name)]
        return lines + [f"error: {event.error}"] * bool(event.error)
    told = _TOLD.get(event.type, lambda _: "")(event)
    return [told] if told else []


def _places(sources: Iterable[Any]) -> str:
    return ", ".join(each.place for each in sources)


_TOLD: dict[str, Callable[[Any], str]] = {
    "steps_routed": lambda event: f"routed: {event.assignments}",
    "limit_reached": lambda event: (
        f"limit {event.limit}, {event.value}" + f" of {event.scope}" * (event.scope != "run")
    ),
    "step_deferred": lambda event: f"step {event.step_id} waits for {[*event.waiting_for]}",
    "plan_updated": lambda event: (
        f"changed by {event.by}: {_CREATED.sub('', json.dumps(event.changes))}"
        * bool(event.changes)
    ),
    "feedback_generated": lambda event: (
        f"judged by {event.by}: {_shortened(event.text)}" * (event.by != "model")
    ),
    "answer_received": lambda event: f"{event.action} {event.key}: {event.text}".rstrip(": "),
    "input_requested": lambda event: (
        f"asks {event.key}, {event.kind}: {event.text} {event.question.problem}".rstrip()
        + f" {json.dumps(event.arguments)}" * bool(event.arguments)
    ),
}
