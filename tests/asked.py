"""A team that is asked on a page: what its models say stands there, and what becomes of it.

A page is as `transcripts.py` says. `$ ask TEXT` asks a team, whose host and chat specialists follow
the `replies` of the session; a `plan.md` of the session goes with it, or another file, `< FILE`. A
`team` block is as `asked_teams.py` says; it has `settings`, too, those of the run, and `storage`:
whether it has one. Further commands:

    $ answer TEXT           answers what is asked; also YAML, and what a file of the session has
    $ resume TEXT           the same as LangGraph's own resumption, which names nothing
    $ ask TEXT with {...}   asks with answers that are handed in
    $ go on                 calls the graph again without a word
    $ ask TEXT until NODE 2 stops before a node, the second time that it comes to it; so `go on`
    $ back to NODE 2        to where it stood then, from where it is edited and goes on
    $ edit 1/name TEXT      writes another result into the state, as people do in Studio
    $ edit OLD -> NEW       so with other words of the plan, or `edit FILE` with another plan
    $ raise NAME=3 by=Ada   raises limits of a run that one of them ended
    $ again OLD -> NEW      asks with the document that it came to, edited (`\\n`: a new line)
    $ shown NAME NAME       what the interrupt shows of what is asked
    $ prompt NODE 2 | grep  a part of what the second call of a node was told
    $ state NAME NAME       what the state has, and `document` that of its plan

Below an `ask` and an `answer` stand the calls of the host (with what it was told, if it was asked
again), the results of steps, and what else happened.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import yaml
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from asked_teams import made, team_of
from replan import (
    InputError,
    Limits,
    RunSettings,
    build_graph,
    open_storage,
    raise_limits,
    stream,
)
from replan.plan import parse_plan_from_markdown
from scripts import THREAD
from states import said
from transcripts import BLOCK, part_of, reply_of
from two_ways import calls_of

COMPLAINT = 200
_CREATED = re.compile(r', "created_at": "[^"]*"')
_AT = re.compile(r"[-\d]{10} \d\d:\d\d UTC")
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
        self._settings = RunSettings(**made(settings)) if settings else None
        self._is_stored = self.options.pop("storage", False)
        self._config: Any = THREAD if self._is_kept or self._is_stored else None
        self._at: Any = None

    async def carry_out(self, section: str, model: Any) -> str:
        """The session with what becomes of it now."""
        async with AsyncExitStack() as opened:
            storage = None
            if self._is_stored:
                storage = await opened.enter_async_context(open_storage(":memory:"))
            self._model, self._graph = model, self._built(model, storage)
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

    def _built(self, model: Any, storage: Any) -> Any:
        config = team_of(self.options, getattr(model, "chat", model))
        if storage:
            return build_graph(config, storage=storage)
        return build_graph(config, checkpointer=InMemorySaver() if self._is_kept else None)

    async def _told(self, typed: str) -> list[str]:
        """What a command is answered."""
        command, *parts = typed.removeprefix("$ ").split(" | ")
        word, _, text = command.partition(" ")
        if word in ("prompt", "shown", "state"):
            told = await self._looked(word, text.split())
        elif word in ("edit", "back", "raise"):
            told = await {"edit": self._edited, "back": self._back, "raise": self._raised}[word](
                text
            )
        else:
            text, _, until = text.partition(" until ")
            told = await self._followed(await self._given(word, text), *until.split())
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
            case "again":
                plan = (await self._graph.aget_state(THREAD)).values["current_plan"]
                return {"plan": _changed(plan.content, text)}
        return None

    async def _raised(self, text: str) -> list[str]:
        limits = dict(each.split("=") for each in text.split())
        by = {"by": limits.pop("by")} if "by" in limits else {}
        settings = RunSettings(limits=Limits(**limits))
        try:
            await raise_limits(self._graph, settings=settings, config=THREAD, **by)
        except InputError as refused:
            return [f"refused: {refused}"]
        return []

    async def _back(self, text: str) -> list[str]:
        node, number = f"{text} 1".split()[1:3]
        stood = [each async for each in self._graph.aget_state_history(THREAD)][::-1]
        self._at = [each.config for each in stood if each.next == (node,)][int(number) - 1]
        return []

    async def _edited(self, text: str) -> list[str]:
        config = self._at or THREAD
        state = await self._graph.aget_state(config)
        key, _, words = text.partition(" ")
        if text in self.files:
            edit = {"current_plan": parse_plan_from_markdown(self.files[text])}
        elif " -> " in text:
            content = _changed(state.values["current_plan"].content, text)
            edit = {"current_plan": {"content": content}}
        else:
            result = state.values["current_specialist_results"][key]
            new = result.replace(result=AIMessage(words))
            edit = {"current_specialist_results": {key: new}}
        # What is over goes on with another plan as if that were new.
        node = "plan_creation" if text in self.files and not state.next else None
        try:
            edited = await self._graph.aupdate_state(config, edit, as_node=node)
        except InvalidUpdateError as refused:
            return [f"refused: {_shortened(str(refused))}"]
        self._at = edited if self._at else None
        return []

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

    async def _events(self, given: Any, node: str = "", times: str = "1") -> list[Any]:
        if not (node or self._at):
            followed = stream(self._graph, given, config=self._config, settings=self._settings)
            return [event async for event in followed]
        events, options = [], {"stream_mode": "custom", "context": self._settings}
        for _ in range(int(times)):
            before = [node] if node else None
            going = self._graph.astream(
                given, self._at or THREAD, interrupt_before=before, **options
            )
            events += [event async for event in going]
            given = self._at = None
        return events

    async def _followed(self, given: Any, *until: str) -> list[str]:
        """What becomes of something that the graph is given."""
        before = len(calls_of(self._model))
        try:
            events = await self._events(given, *until)
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


def _changed(text: str, changes: str) -> str:
    for change in filter(None, changes.split("; ")):
        old, _, new = change.partition(" -> ")
        assert old in text, old
        text = text.replace(old, new.replace("\\n", "\n"))
    return text


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
    beside = ("knowledge", "memory_summary")
    asked = [event for event in asked if event.node not in beside]
    own = [call for call in made if call.step is None and call.node not in beside]
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
    last = next((event for event in events if event.type == "task_completed"), None)
    if last is None:
        return lines
    rounds = f" after {last.round} rounds" if last.round > 1 else ""
    lines.append(f"{last.outcome}{rounds}: {_shortened(last.answer.text)}")
    reset = max([at for at, event in enumerate(events) if event.type == "answer_reset"], default=0)
    streamed = "".join(event.text for event in events[reset:] if event.type == "answer_token")
    if streamed != last.answer.text:
        lines.append(f"streamed: {_shortened(streamed)}".strip())
    lines += [f"warning: {_AT.sub('TIME', each)}" for each in last.warnings]
    return lines + [
        f"then a summary of {event.covered} messages: {event.error}".rstrip(": ")
        for event in events
        if event.type == "memory_summary"
    ]


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
    "memory_applied": lambda event: (
        f"{f'step {event.step_id}' if event.step_id else 'the host'} sees {event.visible} messages,"
        f" {event.summarised} summarised, {event.omitted} left out"
    ),
    "steps_invalidated": lambda event: f"done again: {', '.join(map(str, event.reruns))}",
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
