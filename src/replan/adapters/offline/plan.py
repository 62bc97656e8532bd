"""Make a plan document of a request: who does each clause, and after which others."""

import re
from collections.abc import Iterable, Sequence

from replan.adapters.offline.request import (
    Clause,
    clauses_of,
    files_named,
    one_line,
    without_bullet,
)
from replan.adapters.offline.team import best_for, joiners_of, needs_inputs, workers_of
from replan.plan.model import PlanStep, TaskPlan, Value
from replan.plan.rendering import render
from replan.state.team import SpecialistCard, select_specialists_by_task

_NOT_PLANNED = "Not in this plan, because nobody in the team does it:"
_LONGEST_TITLE, _LONGEST_STEP = 72, 240
_REFERS_BACK = re.compile(
    r"\b(?:both|it|them|these|those|results?|findings|above|based\s+on|everything)\b"
    r"|结果|上述|以上|两者|综合",
    re.IGNORECASE,
)
_BRINGS_TOGETHER = re.compile(
    r"\b(?:combin\w+|merg\w+|compar\w+|contrast|reports?|summar\w+|overview|conclu\w+|brief)\b"
    r"|报告|总结|比较|对比",
    re.IGNORECASE,
)
_COMPARES = re.compile(r"\b(?:compar\w+|contrast)\b|比较|对比", re.IGNORECASE)
_REPORT_ON = re.compile(
    r"^(?:write|make|create|produce|prepare|draft|generate|give|build)\s+(?:me\s+|us\s+)?"
    r"(?P<report>(?:an?\s+|the\s+)?(?:[\w-]+\s+){0,2}(?:report|summary|overview|brief))\s+"
    r"(?:on|of|about|for|with|showing|comparing|covering|from)\s+(?P<subject>.+)$",
    re.IGNORECASE,
)
_PRESENTS = re.compile(
    r"^(?:write|report|present|summari[sz]e|publish|document|save)\b|报告|总结|写", re.IGNORECASE
)


class PlanDraft(Value):
    """What could be planned of a request, and what could not.

    Attributes:
        title: The request on one line.
        steps: The steps, numbered from 1.
        not_planned: The clauses that nobody in the team can do.
    """

    title: str
    steps: tuple[PlanStep, ...] = ()
    not_planned: tuple[str, ...] = ()

    def document(self) -> str:
        """The plan as the host reads it; what could not be planned stands below the title."""
        text = render(TaskPlan(title=self.title, steps=self.steps))
        if not self.not_planned:
            return text
        missing = "; ".join(one_line(clause, _LONGEST_STEP) for clause in self.not_planned)
        title, _, steps = text.partition("\n")
        return f"{title}\n\n{_NOT_PLANNED} {missing}\n{steps}"


class _Ends:
    """The ends of a growing plan.

    Attributes:
        open: Steps that no other step waits for yet.
        loose: Steps whose results no other step has brought together yet; "then" only waits.
    """

    def __init__(self) -> None:
        self.open: list[int] = []
        self.loose: list[int] = []
        self._place = (-1, -1)
        self._sentences: dict[int, int] = {}
        self._branch: tuple[int, ...] = ()

    def enter(self, clause: Clause) -> None:
        """Note, where a new part begins, which steps a "then" would follow."""
        if (clause.sentence, clause.part) != self._place:
            self._place = (clause.sentence, clause.part)
            self._branch = self._steps_of(clause.sentence) or self._steps_of(
                max((self._sentences[step] for step in self.open), default=-1)
            )

    def before(self, clause: Clause, *, joins: bool, reports: bool) -> tuple[int, ...]:
        """The steps that a clause has to wait for; a report takes in every result so far."""
        if reports:
            return tuple(self._sentences)
        if joins:
            return tuple(self.loose)
        if clause.link == "finally":
            return tuple(self.open)
        return self._branch if clause.link == "then" else ()

    def add(self, after: Iterable[int], sentence: int, *, joins: bool) -> int:
        """The next step takes its place in the plan; give its id."""
        step = len(self._sentences) + 1
        waited_for = set(after)
        self.open = [end for end in self.open if end not in waited_for] + [step]
        taken_in = waited_for if joins else set[int]()
        self.loose = [each for each in self.loose if each not in taken_in] + [step]
        self._sentences[step] = sentence
        return step

    def _steps_of(self, sentence: int) -> tuple[int, ...]:
        return tuple(step for step in self.open if self._sentences[step] == sentence)


def draft_plan(request: str, team: Sequence[SpecialistCard]) -> PlanDraft:
    """Plan a request as far as the team can serve it; no step at all if nobody can."""
    steps: list[PlanStep] = []
    not_planned: list[str] = []
    ends = _Ends()
    for clause in clauses_of(request):
        ends.enter(clause)
        new = _steps_for(clause, team, ends)
        if not new:
            not_planned.append(clause.text)
        steps += new
    return PlanDraft(title=_title(request), steps=tuple(steps), not_planned=tuple(not_planned))


def forced_plan(request: str, team: Sequence[SpecialistCard]) -> PlanDraft:
    """Plan a request as one step for whoever is nearest: for a host that insists on a plan."""
    name = select_specialists_by_task(request, team)[0] if team else "specialist"
    text = one_line(request, _LONGEST_STEP) or "Answer the request"
    step = PlanStep(id=1, description=text, assigned_to=name)
    return PlanDraft(title=_title(request), steps=(step,))


def _steps_for(clause: Clause, team: Sequence[SpecialistCard], ends: _Ends) -> list[PlanStep]:
    """The steps of one clause: one, none, or two where it asks for a report on something new."""
    texts = [clause.text]
    if not ends.open or files_named(clause.text):
        texts = _report_apart(clause.text, team)
    new: list[PlanStep] = []
    for text in texts:
        card = _who(text, team, begins=not ends.open)
        if card is None:
            continue
        joins = bool(ends.open) and _joins(text, card)
        after = (
            (max(ends.open),)
            if new
            else ends.before(clause, joins=joins, reports=joins and needs_inputs(card))
        )
        source = "" if joins or needs_inputs(card) else clause.source
        new.append(
            PlanStep(
                id=ends.add(after, clause.sentence, joins=joins),
                description=one_line(_with_source(text, source), _LONGEST_STEP),
                assigned_to=card.name,
                dependencies=after,
            )
        )
    return new


def _report_apart(text: str, team: Sequence[SpecialistCard]) -> list[str]:
    """Divide "write a report on X" into X and the report, if X is work for another specialist."""
    found = _REPORT_ON.match(text)
    if (
        found is None
        or not joiners_of(team)
        or best_for(found["subject"], workers_of(team)) is None
    ):
        return [text]
    subject = found["subject"]
    return [subject[0].upper() + subject[1:], f"Write {found['report']}"]


def _who(text: str, team: Sequence[SpecialistCard], *, begins: bool) -> SpecialistCard | None:
    if begins:
        # Anything can be compared: without something to build on, the word tells of nobody.
        return best_for(_COMPARES.sub("", text), workers_of(team))
    card = best_for(text, team)
    if card is None and _PRESENTS.search(text) and _REFERS_BACK.search(text):
        return next(iter(joiners_of(team)), None)
    return card


def _joins(text: str, card: SpecialistCard) -> bool:
    if needs_inputs(card) or _REFERS_BACK.search(text):
        return True
    return _BRINGS_TOGETHER.search(text) is not None and not files_named(text)


def _with_source(text: str, source: str) -> str:
    return f"{text} in {source}" if source else text


def _title(request: str) -> str:
    first, *others = [line for line in request.splitlines() if line.strip()] or [""]
    line = f"{first} \u2026" if others and not first.rstrip().endswith((":", "\uff1a")) else first
    return (
        one_line(without_bullet(line).replace("#", " ").rstrip(" :.\uff1a"), _LONGEST_TITLE)
        or "Plan"
    )
