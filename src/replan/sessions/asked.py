"""What the run that a context carries asks of the person."""

from typing import cast

from langgraph.types import Interrupt

from replan.runs.asked.asks import Ask, ask_of, asks_of
from replan.runs.travel.portable import PortableRun
from replan.state.enhanced import EnhancedState
from replan.state.rules import open_questions


def asked_in(run: PortableRun | None) -> tuple[Ask, ...]:
    """Read what a run waits for; empty if it was stopped, or does not exist."""
    if run is None or not run.waits:
        return ()
    if run.graphs is not None:
        return tuple(
            Ask(
                key=each.key,
                kind="question",
                text=each.text,
                interrupt=each.key,
                step_id=each.step_id,
                who=each.who,
            )
            for each in run.graphs.asked
        )
    approval = run.state.get("approval")
    if run.next == "plan_approval" and approval is not None:
        return asks_of([Interrupt(value=approval.payload, id="")])
    return tuple(ask_of(each) for each in open_questions(cast("EnhancedState", run.state)))
