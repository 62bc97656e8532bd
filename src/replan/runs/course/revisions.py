"""The versions of a run's plan: who made each, why, and which steps it removed or added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from replan.runs.log.outline import Outline

if TYPE_CHECKING:
    from replan.runs.course.whole_run import WholeRun

HANDED_IN = "handed in with the request"
_AUTHORS = {"model": "the host", "person": "a person", "rule": "a rule"}
_NO_REASON = "Changed by a person"  # what the history of a plan says about every such change


@dataclass(frozen=True, kw_only=True)
class Revision:
    """What happened to a plan at once."""

    version: int
    at: datetime | None
    by: str  # who made it, by name where it is known; of the first plan it may begin as `HANDED_IN`
    why: str
    changes: Mapping[str, Any]  # as the event has them; empty for the first plan
    before: Outline
    after: Outline
    is_first: bool = False

    @property
    def removed(self) -> dict[int, str]:
        """The steps that it took out of the plan, with their words."""
        words = {int(each["id"]): str(each.get("description", "")) for each in self.before.steps}
        return {int(each): words.get(int(each), "") for each in self.changes.get("removed") or ()}


def revisions_in(run: WholeRun) -> Iterator[Revision]:
    """Yield the versions of a run's plan, the first plan before all others."""
    history = getattr(run.plan, "update_history", ())
    reasons = {each.version: each.description for each in history}
    outline, person, is_thought_of = Outline(), "", False
    for event in run.events:
        said = cast("Mapping[str, Any]", event.details)
        before, outline = outline, outline.after(event)
        if (
            event.type in ("answer_received", "run_corrected")
            and said.get("kind", "plan") == "plan"
        ):
            person = str(said.get("by") or "")
        is_thought_of |= event.type == "model_invoked"
        is_first = event.type == "plan_created"
        if not is_first and not (event.type == "plan_updated" and said.get("changes")):
            continue
        version = int(said.get("version") or 0)
        author = str(said.get("by") or "")
        by = (person if author == "person" else "") or _AUTHORS.get(author, "somebody")
        if is_first:
            user = run.labels.get("user", "")
            handed_in = f"{HANDED_IN} (user={user})" if user else HANDED_IN
            by = _AUTHORS["model"] if is_thought_of else handed_in
        why = reasons.get(version, "")
        yield Revision(
            version=version,
            at=event.at,
            by=by,
            why="" if why.startswith(_NO_REASON) else why,
            changes={} if is_first else said["changes"],
            before=before,
            after=outline,
            is_first=is_first,
        )
