"""The questions of a waiting run, and their answers; pure functions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic import JsonValue

from replan.errors import InputError
from replan.langgraph_inside.tasks import place_of_send
from replan.ports.journal import Journal
from replan.state.enhanced import EnhancedState
from replan.state.person.answers import read_call_decision, read_decision, unwrapped_answer
from replan.state.person.verdicts import problem_in
from replan.state.person.waiting import waiting_for
from replan.state.questions import Approval, Decision, Question, QuestionKind, keys_meant, short_key
from replan.state.results import Assignment
from replan.state.rules import open_questions
from replan.steps.board import QUESTIONS
from replan.steps.step_record import ANSWERS
from replan.values import restored

PLAN = "plan"
SEATS = "__seats__"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One thing that a run waits for.

    Attributes:
        key: The name that an answer uses.
        kind: `question`, `approval` (of a tool call), `in doubt`, or `plan`.
        text: The question; for a plan, its document.
        interrupt: The id of LangGraph's interrupt that takes the answer; empty if there is none.
        step_id: The step that asks; 0 if the host does.
        who: The step and the specialist that ask; empty if the host does.
        details: For a tool call, the tool and its arguments.
        remarks: For a plan, its reason and its changes.
        problem: Why the last answer could not be used.
        draft: For a plan, the changed document that could not be used.
        is_keyed: Whether the interrupt takes answers by key, because it asks several questions.
        fingerprint: An answer may carry it to name exactly this; may be empty.
    """

    key: str
    kind: QuestionKind | Literal["plan"]
    text: str
    interrupt: str = ""
    step_id: int = 0
    who: str = ""
    details: JsonValue = None
    remarks: tuple[str, ...] = ()
    problem: str = ""
    draft: str = ""
    is_keyed: bool = False
    fingerprint: str = ""

    @property
    def problem_shown(self) -> str:
        """The question, for front ends with a button for each answer."""
        return problem_in(self.text) if self.kind == "in doubt" else self.text

    @property
    def details_shown(self) -> JsonValue:
        """The details for a person; for work in doubt, the task or the call."""
        if self.kind != "in doubt" or not isinstance(self.details, dict):
            return self.details
        call = {name: self.details[name] for name in ("tool", "arguments") if name in self.details}
        return cast("JsonValue", call) or self.details.get("task")

    def bound(self, answer: JsonValue) -> JsonValue:
        """The answer, bound to this question."""
        return {"answer": answer, "fingerprint": self.fingerprint} if self.fingerprint else answer


Seats = Mapping[str, Assignment]  # the steps whose graphs ask, by the ids of their interrupts


def seats_of(snapshot: StateSnapshot) -> Seats:
    """Return which step's graph each interrupt is of."""
    dispatched = cast("EnhancedState", snapshot.values).get("dispatched", [])
    sent = [assignment for assignment in dispatched if not assignment.refused]
    places = ((place_of_send(task), task) for task in snapshot.tasks)
    return {
        interrupt.id: sent[place]
        for place, task in places
        if place is not None and place < len(sent)
        for interrupt in task.interrupts
    }


def state_at_rest(snapshot: StateSnapshot) -> dict[str, Any]:
    """The state of a waiting run as LangGraph returns it, with the graphs that ask."""
    if not snapshot.interrupts:
        return dict(snapshot.values)
    seats = {SEATS: found} if (found := seats_of(snapshot)) else {}
    return {**snapshot.values, "__interrupt__": list(snapshot.interrupts), **seats}


def asks_in(state: Mapping[str, Any]) -> tuple[Ask, ...]:
    """Read the questions of a run at rest."""
    return asks_of(state.get("__interrupt__") or (), state.get(SEATS) or {})


def asks_of(interrupts: Iterable[Interrupt], seats: Seats | None = None) -> tuple[Ask, ...]:
    """Read the questions of LangGraph's interrupts: the host's, and those of other graphs."""
    known = seats or {}
    return tuple(ask for each in interrupts for ask in _asks_of(each, known.get(each.id)))


def _asks_of(interrupt: Interrupt, seat: Assignment | None) -> list[Ask]:
    waiting = waiting_for([interrupt])
    if isinstance(waiting, Approval):
        remarks = (waiting.reason, waiting.changes)
        return [
            Ask(
                key=PLAN,
                kind=PLAN,
                text=waiting.approve,
                interrupt=interrupt.id,
                remarks=tuple(each.strip() for each in remarks if each.strip()),
                problem=waiting.problem,
                draft=waiting.draft,
                fingerprint=waiting.fingerprint,
            )
        ]
    return [ask_of(question, interrupt.id, seat) for question in waiting]


def ask_of(question: Question, interrupt: str = "", seat: Assignment | None = None) -> Ask:
    # That of a foreign graph has the id of its interrupt for a key.
    is_foreign = "/" not in question.key
    place = (seat.key if seat else "") if is_foreign else question.key.rpartition("/")[0]
    return Ask(
        key=short_key(question.key),
        kind=question.kind,
        text=question.text,
        interrupt=interrupt,
        step_id=int(place.partition("/")[0] or 0),
        who=_steps_that_ask(place),
        details=question.details,
        is_keyed=not is_foreign,
        fingerprint=question.fingerprint,
    )


def _steps_that_ask(place: str) -> str:
    """The step that asks; in a graph that a step runs, the path begins with that step."""
    places = place.split("/") if place else []
    steps = zip(places[::2], places[1::2], strict=True)
    return ", ".join(f"step {step} {specialist}" for step, specialist in steps)


async def open_asks(snapshot: StateSnapshot, journal: Journal) -> tuple[Ask, ...]:
    """The open questions: those that the run stopped for, and earlier ones of its steps."""
    state = cast("EnhancedState", snapshot.values)
    asks = {ask.key: ask for ask in asks_of(snapshot.interrupts, seats_of(snapshot))}
    run_id = state.get("run_id", "")
    noted = await journal.notes(run_id, QUESTIONS)
    answered = await journal.notes(run_id, ANSWERS)
    # After a round that was cut off, the questions are only in the journal.
    known = {q.key: q for q in (restored(Question, note) for note in noted.values())}
    questions = {**known, **state.get("questions", {})}
    for question in open_questions(cast("EnhancedState", {**state, "questions": questions})):
        if question.key not in asks and ANSWERS + question.key not in answered:
            asks[question.key] = ask_of(question)
    return tuple(asks.values())


def resumption(asks: Sequence[Ask], answers: Mapping[str, JsonValue]) -> Command[Any]:
    """Return what continues a run; each answer by key, with what it is about."""
    values: dict[str, Any] = {}
    for ask in asks:
        if ask.key not in answers:
            continue
        if ask.is_keyed:
            values.setdefault(ask.interrupt, {})[ask.key] = answers[ask.key]
        else:
            values[ask.interrupt] = answers[ask.key]
    return Command(resume=values)


def answers_by_key(given: object, asks: Sequence[Ask]) -> dict[str, JsonValue]:
    """Read the answer of a program: one answer, or answers by key."""
    # The beginning of a key will do, such as the number of its step. An answer may say by a
    # fingerprint what it is about: `{"answer": ..., "fingerprint": ...}`.
    if not asks:
        raise InputError("This run has no open question. Continue it without an answer.")
    by_key = {ask.key: ask for ask in asks}
    if isinstance(given, Mapping):
        named = {str(name): value for name, value in cast("Mapping[Any, Any]", given).items()}
        meant = {name: keys_meant(name, by_key) for name in named}
        if named and all(len(keys) == 1 for keys in meant.values()):
            return {
                keys[0]: _read_answer(by_key[keys[0]], named[name]) for name, keys in meant.items()
            }
    if len(asks) == 1:
        return {asks[0].key: _read_answer(asks[0], cast("object", given))}
    keys = ", ".join(f"'{key}'" for key in by_key)
    raise InputError(
        f"It is not clear which question this answers. Give a mapping by key; open: {keys}."
    )


def _read_answer(ask: Ask, given: object) -> JsonValue:
    if ask.fingerprint:
        given = unwrapped_answer(given, ask.kind, ask.fingerprint)
    if isinstance(given, Decision):
        return decided(**dict(given))
    return answer_of(ask, given) if isinstance(given, str) else cast("JsonValue", given)


def read_answers(texts: Sequence[str], asks: Sequence[Ask]) -> dict[str, JsonValue]:
    """Read the answers of a command line: `TEXT` for the only question, else `KEY=TEXT`."""
    # The beginning of a key will do, such as the number of its step.
    answers: dict[str, JsonValue] = {}
    by_key = {ask.key: ask for ask in asks}
    for text in texts:
        name, sign, value = text.partition("=")
        keys = keys_meant(name.strip(), by_key) if sign else []
        named = [by_key[key] for key in keys]
        if len(named) == 1 and named[0].key in answers:
            raise InputError(f"There are two answers to {named[0].key}. Give one.")
        if len(named) == 1:
            answers[named[0].key] = answer_of(named[0], value)
        elif not named and len(asks) == 1 == len(texts):
            answers[asks[0].key] = answer_of(asks[0], text)
        else:
            keys = ", ".join(ask.key for ask in named or asks)
            raise InputError(f"Which question does '{text}' answer? Write KEY=TEXT with: {keys}.")
    return answers


def answer_of(ask: Ask, text: str) -> JsonValue:
    match ask.kind:
        case "plan":
            return decided(**dict(read_decision(text)))
        case "approval":
            given = arguments_of(text) if text.lstrip().startswith("{") else None
            if given is None or "action" in given:
                return decided(**dict(read_call_decision(given or text)))
            return decided(action="edit", arguments=given)
        case _:
            return text


def arguments_of(text: str) -> dict[str, JsonValue]:
    """Read the arguments of a tool, written as JSON."""
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        found, problem = None, f" (line {error.lineno}, column {error.colno}: {error.msg})"
    else:
        problem = ""
    if not isinstance(found, dict):
        raise InputError(f'These are not arguments{problem}. Write JSON such as {{"to": "me"}}.')
    return cast("dict[str, JsonValue]", found)


def decided(**decision: Any) -> JsonValue:
    """Return the answer that makes a `Decision` with these fields."""
    return Decision(**decision).model_dump(mode="json", exclude_defaults=True)
