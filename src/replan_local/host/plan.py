"""Make a plan document of a request: who does each clause, and after which others."""

import re
from collections.abc import Sequence

from replan_local.host.ends import Ends
from replan_local.host.request import (
    Clause,
    clauses_of,
    files_named,
    one_line,
    without_bullet,
)
from replan_local.host.team import (
    best_for,
    computes,
    joiners_of,
    needs_inputs,
    reads,
    workers_of,
)
from replan_local.arithmetic import compute, relates
from replan.plan.model import PlanStep, TaskPlan, Value
from replan.plan.rendering import render
from replan.state.team import SpecialistCard, best_cards

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
_CHART_OF = re.compile(
    r"^(?:(?:make|create|draw|show|give|produce|generate|prepare)\s+(?:me\s+|us\s+)?(?:an?\s+|the\s+)?"
    r"(?P<shape>(?:bar|line)\s+)?(?:chart|graph|plot|diagram)\s+(?:of|for|with|showing|from)"
    r"|plot|chart|graph|draw)\s+(?:the\s+)?(?P<subject>.+)$",
    re.IGNORECASE,
)
_WITH_CHART_OF = re.compile(
    r"^(?:an?\s+)?(?P<shape>(?:bar|line)\s+)?(?:chart|graph|plot|diagram)\s+(?:of|for|showing)\s+"
    r"(?:the\s+)?(?P<subject>.+)$",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\b(?:by|per|each|every)\s+[a-z]", re.IGNORECASE)
_PRESENTS = re.compile(
    r"^(?:write|report|present|draw|plot|chart|summari[sz]e|publish|document|save)\b|报告|总结|写",
    re.IGNORECASE,
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


def draft_plan(request: str, team: Sequence[SpecialistCard]) -> PlanDraft:
    """Plan a request as far as the team can serve it; no step at all if nobody can."""
    steps: list[PlanStep] = []
    not_planned: list[str] = []
    ends = Ends()
    for clause in clauses_of(request):
        ends.enter(clause)
        new = _steps_for(clause, team, ends)
        if not new:
            not_planned.append(clause.text)
        steps += new
    return PlanDraft(title=_title(request), steps=tuple(steps), not_planned=tuple(not_planned))


def forced_plan(request: str, team: Sequence[SpecialistCard]) -> PlanDraft:
    """Plan a request as one step for whoever is nearest: for a host that insists on a plan."""
    name = next((card.name for card in best_cards(request, team)), "")
    text = one_line(request, _LONGEST_STEP) or "Answer the request"
    step = PlanStep(id=1, description=text, assigned_to=name)
    return PlanDraft(title=_title(request), steps=(step,))


def _steps_for(clause: Clause, team: Sequence[SpecialistCard], ends: Ends) -> list[PlanStep]:
    """The steps of one clause: one, none, or two where it asks for a report on something new."""
    texts = [clause.text]
    if not ends.open or files_named(clause.text):
        texts = _report_apart(clause.text, team)
    new: list[PlanStep] = []
    for text in texts:
        card = _who(text, team, ends)
        if card is None:
            continue
        joined = _joined(text, card, ends)
        after = (max(ends.open),) if new else joined or ends.linked(clause)
        alone = not joined and not needs_inputs(card) and reads(card, clause.source, team)
        line = one_line(_with_source(text, clause.source if alone else ""), _LONGEST_STEP)
        new.append(
            PlanStep(
                id=ends.add(line, after, clause.sentence, joins=bool(joined)),
                description=line,
                assigned_to=card.name,
                dependencies=after,
            )
        )
    return new


def _report_apart(text: str, team: Sequence[SpecialistCard]) -> list[str]:
    """Divide "write a report on X" into X and the report, if X is work for another specialist."""
    found = _REPORT_ON.match(text) or _CHART_OF.match(text)
    if found is None or not joiners_of(team):
        return [text]
    groups = found.groupdict()
    report, subject = f"Write {groups.get('report', 'a report')}", found["subject"]
    chart = found if "report" not in groups else _WITH_CHART_OF.match(subject)
    if chart is not None:
        subject = chart["subject"]
        report += f" with a {(chart['shape'] or '').lower()}chart"
    if best_for(subject, workers_of(team)) is None:
        return [text]
    return [subject[0].upper() + subject[1:], report]


def _who(text: str, team: Sequence[SpecialistCard], ends: Ends) -> SpecialistCard | None:
    if compute(text) is not None:
        return next((card for card in team if computes(card)), None) or best_for(text, team)
    builds_on = ends.spoken_of(text) or (ends.open and _REFERS_BACK.search(text))
    if not builds_on:
        # There is no number to compute with.
        team = [card for card in team if not computes(card)]
    elif relates(text) and not files_named(text) and not _GROUPED.search(text):
        team = [card for card in team if computes(card)] or team
    if not ends.open:
        # Anything can be compared: without something to build on, the word tells of nobody.
        return best_for(_COMPARES.sub("", text), workers_of(team))
    card = best_for(text, team)
    if card is None and _PRESENTS.search(text) and _REFERS_BACK.search(text):
        return next(iter(joiners_of(team)), None)
    return card


def _joined(text: str, card: SpecialistCard, ends: Ends) -> tuple[int, ...]:
    """The steps whose results a clause brings together; none if it stands alone."""
    if not ends.open:
        return ()
    if needs_inputs(card):
        return ends.every()
    if computes(card):
        return () if compute(text) is not None else ends.spoken_of(text) or tuple(ends.loose)
    together = _BRINGS_TOGETHER.search(text) is not None and not files_named(text)
    return ends.compared(text) if together or _REFERS_BACK.search(text) else ()


def _with_source(text: str, source: str) -> str:
    return f"{text} in {source}" if source else text


def _title(request: str) -> str:
    first, *others = [line for line in request.splitlines() if line.strip()] or [""]
    line = f"{first} \u2026" if others and not first.rstrip().endswith((":", "\uff1a")) else first
    return (
        one_line(without_bullet(line).replace("#", " ").rstrip(" :.\uff1a"), _LONGEST_TITLE)
        or "Plan"
    )
