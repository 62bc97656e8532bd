"""Runs in which all that a view tells of a run happens."""

from langchain_core.messages import AIMessage

from made_runs import STEPS, answered, at, attempt, call, event, whole
from replan.log.amounts import Spending
from replan.log.rows import Request
from replan.plan.model import Condition, PlanStep, PlanUpdate, PlanUpdateType, StepStatus, TaskPlan
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.usage import TokenCount

DAY = 24 * 60 * 60
ROOM = "LimitReachedError: The limit max_cost=0.05 is reached."


def ask(key, kind="question", **fields):
    return Question(**{"key": key, "kind": kind, "text": "?", "step_id": int(key[0]), **fields})


def revised():
    """A plan that persons and the host changed, and what was said about its calls."""
    clerk = {"step_id": 2, "specialist": "clerk"}
    pay = {"call": "c", "tool": "pay", "arguments": {"to": "b" * 90}, "attempt": 1, **clerk}
    asks = {"key": "2/clerk/1", "kind": "approval", "text": "May it?"}
    foreign = "4d97934b3cae0cb1"
    outline = [
        {"id": 1, "description": "Book a hostel", "assigned_to": "a", "joined_by": ["b"]},
        {"id": 2, "description": "Pay", "dependencies": [1]},
        {"id": 3, "description": "Flowers"},
    ]
    edits = {"1": {"description": "Book a tent", "priority": 2}, "2": {"brief": "All of it."}}
    own = {"modified": edits, "removed": [3]}
    added = {"index": 2, "step": {"id": 4, "description": "Go"}}
    hosts = {"modified": {"1": {"description": "x" * 120}}, "added": [added]}
    later = {"modified": {"4": {"description": "Run"}}}
    reason = PlanUpdate(
        version=2,
        description="Changed by a person before it ran.",
        update_type=PlanUpdateType.MODIFY_STEP,
        timestamp=at(3),
        changes={},
    )
    answers = {
        "2/clerk/2": {"answer": {"action": "edit", "arguments": {"to": "bob"}}, "fingerprint": "f"},
        "2/clerk/3": {"answer": {"action": "reject", "reason": "too much"}, "fingerprint": "f"},
        "2/clerk/4": {"answer": "reject", "fingerprint": "f", "is_keyed": True},
        foreign[:8]: "red",
    }
    said = Request(run_id="r", name="a", kind="answer", at=at(8), by="anna", answers=answers)
    known = [ask(f"2/clerk/{n}", "question" if n == 4 else "approval") for n in (2, 3, 4)]
    found = [{"source": "prices.md", "line": 3}, {"source": "prices.md", "line": 9}]
    given = {"node": "specialist", "step_id": 1, "specialist": "worker", "error": ""}
    return whole(
        plan=TaskPlan(steps=STEPS[:2], version=2, update_history=(reason,)),
        results=(),
        questions={each.key: each for each in known},
        requests=(said,),
        ledger=(attempt(1, 1, 1, 10, "failed"), attempt(1, 2, 2 * DAY, 2 * DAY + 1)),
        last_seen_at=at(3 * DAY),
        events=(
            event(1, 1, "plan_created", version=1, title="Party", outline=outline),
            event(2, 2, "approval_requested", reason="It is new."),
            event(3, 3, "answer_received", key="plan", kind="plan", action="edited", by="petra"),
            event(4, 3, "plan_updated", version=2, by="person", changes=own),
            event(5, 4, "plan_updated", version=3, by="model", changes=hosts),
            event(6, 5, "approval_requested", reason="", problem="The model has no other plan."),
            event(7, 5, "plan_updated", version=4, by="model", changes=later),
            event(8, 6, "input_requested", **asks, **clerk, tool="pay", arguments={"to": "ann"}),
            event(9, 6, "input_requested", key="2/clerk/2", text="Old?", tool="", **clerk),
            event(10, 6, "input_requested", key=foreign, text="Which?", tool="", **clerk),
            event(11, 9, "answer_received", key=foreign, action="answered", **clerk),
            event(12, 9, "answer_received", **asks, **clerk, action="approved", by="jonas"),
            event(13, 9, "tool_completed", **pay, approval="approved", status="failed",
                  result="Error: PermissionError: the IBAN is blocked"),
            event(14, 9, "answer_received", **asks, **clerk, action="edited", by="maria"),
            event(15, 9, "tool_completed", **pay, approval="edited", result="paid"),
            event(16, 9, "tool_completed", **pay, approval="rejected", status="rejected",
                  result="Error: A person said no."),
            event(17, 9, "tool_completed", **pay, status="failed", result="Error: no"),
            event(18, 10, "knowledge_retrieved", **given, sources=found),
            event(19, 11, "knowledge_retrieved", node="think", sources=[], error="no such folder"),
            event(20, 12, "feedback_generated", text="The plan goes on."),
            event(21, 30, "run_stopped", reason="waiting"),
            event(22, 2 * DAY, "run_resumed", by="otto"),
        ),
    )  # fmt: skip


def waiting():
    """Steps that wait for each other, for their turn, for a person, and in vain."""
    done = {"assigned_to": "worker", "status": StepStatus.COMPLETED}
    steps = (
        PlanStep(id=1, description="Fetch", **done),
        PlanStep(id=2, description="Pay", dependencies=(1,), **done),
        PlanStep(id=3, description="Ask", assigned_to="worker", dependencies=(1,)),
        PlanStep(id=4, description="Tell", assigned_to="worker", dependencies=(1, 3)),
        PlanStep(id=5, description="Kept", result="It is kept.", **done),
        PlanStep(id=6, description="Left", status=StepStatus.SKIPPED, feedback="Skipped by eva."),
        PlanStep(id=7, description="Break", assigned_to="worker", status=StepStatus.FAILED),
        PlanStep(id=8, description="Mend", assigned_to="worker", dependencies=(7,)),
        PlanStep(id=9, description="Sweep", condition=Condition(step=7, outcome="failed")),
    )
    return whole(
        plan=TaskPlan(steps=steps),
        results=(),
        ledger=(
            attempt(1, 1, 0, 10),
            attempt(2, 1, 15, 16, "waiting"),
            attempt(2, 2, 46, 47, "failed", "reset"),
            attempt(2, 3, 49, 50),
            attempt(3, 1, 10, 11, "waiting"),
            attempt(7, 1, 0, 1, "failed", "no"),
            attempt(8, 1, 5, None, "unknown_outcome"),
        ),
        events=(
            event(1, 0, "plan_created", version=1, steps=9),
            event(2, 5, "input_requested", key="8/worker/1", step_id=8, kind="unknown_outcome"),
            event(3, 20, "run_stopped", reason="waiting"),
            event(4, 46, "run_resumed", by="eva"),
            event(5, 50, "run_stopped", reason="waiting"),
        ),
        pending_questions=(ask("3/worker/1"), ask("8/worker/1", "unknown_outcome")),
        requests=(),
        outcome="waiting",
        last_seen_at=at(50),
        origin="0123456789",
    )


def cut_off():
    """Calls that were cut off or never ended, replies and results that are not whole."""
    host, step = answered(None, None, "a", 0.5), answered(1, 1, "b", 0.25)
    gone = answered(1, 1, "c", 0.0633, "StepTimeoutError: no answer within 1 s")
    gone |= {"input_tokens": None, "output_tokens": None}
    unread = {"problem": "Empty.", "fallback": "a simple request"}
    cut = SpecialistResult(
        specialist_name="worker",
        step_id=1,
        cut="reply_length",
        usage=TokenCount(calls=1, input_tokens=10, output_tokens=5),
    )
    failed = {"specialist_name": "worker", "step_id": 2, "status": "failed", "error": "No ink."}
    told = {"prompt": [{"role": "human", "length": 4, "ref": "p"}], "model": "m"}
    settled = {"key": "2/worker/1", "kind": "unknown_outcome", "by": "anna", "action": "answered"}
    return whole(
        limit_reached="max_cost",
        spent={"run": Spending(calls=5, tokens=4000, cost=1.6)},
        results=(
            cut,
            SpecialistResult(**failed, result=AIMessage("No ink.")),
            SpecialistResult(**failed, result=AIMessage("Half a page.")),
        ),
        ledger=(
            attempt(1, 1, 1, 8, "failed", "no"),
            attempt(1, 1, 1, 9, "failed", "no", "other"),
            attempt(2, 1, 20, None, "unknown_outcome"),
            attempt(3, 1, 30, 31, "cancelled", ROOM),
        ),
        events=(
            event(1, 0, "model_invoked", **host, prompt=told["prompt"]),
            event(2, 1, "model_completed", **host),
            event(3, 2, "model_invoked", **{**step, **told}),
            event(4, 3, "model_completed", **step, reply={"role": "ai", "ref": "x"}),
            event(5, 4, "model_invoked", **host, is_reprompt=True),
            event(6, 5, "model_completed", **host),
            event(7, 6, "reply_parse_failed", node=host["node"], **unread),
            event(8, 7, "model_completed", **gone),
            event(9, 8, "specialist_completed", step_id=1, specialist="worker", error="no",
                  cut="reply_length"),
            event(10, 9, "model_invoked", **call(1, 1, "d", model="m")),
            event(11, 21, "tool_invoked", **call(2, 1, "t", tool="price", arguments={"n": 1}),
                  refs={"arguments": "ghi"}, effects="unsafe"),
            event(12, 30, "answer_received", step_id=2, specialist="worker", text="It is done.",
                  **settled),
            event(13, 40, "limit_reached", limit="max_cost", value=0.05, scope="run",
                  reason="0.044 spent, and the next call may need 0.01"),
        ),
        texts={"p": "Buy gold"},
    )  # fmt: skip


def stood_still(why):
    """A run that stood still for 30 s, and had another step since then."""
    changes = {"added": [{"index": 2, "step": {"id": 3, "description": "Tell"}}]}
    asked = (attempt(1, 1, 5, 20, "waiting", who="asker"), attempt(1, 1, 10, 25))
    return whole(
        results=(),
        ledger=(*asked, attempt(1, 2, 80, 90, who="asker")),
        events=(
            event(1, 0, "run_started", request="Buy"),
            event(2, 1, "plan_created", version=1, steps=2),
            event(3, 30, "run_stopped", reason=why, by="", seconds=30),
            event(4, 60, "run_resumed", by="otto"),
            event(5, 70, "plan_updated", changes=changes, version=2, by="model"),
            event(6, 100, "task_completed", outcome="partial", warnings=[]),
        ),
    )


def at_work():
    """A run at work whose plan lost a step that had failed."""
    begun = event(6, 61, "tool_invoked", **call(2, 2, "t", tool="price", arguments={}))
    updated = event(5, 30, "plan_updated", by="model", version=2, changes={"removed": [4]})
    ledger = (
        attempt(1, 1, 1, 10),
        attempt(4, 1, 10, 20, "failed", "busy"),
        attempt(2, 2, 60, None),
    )
    return whole(
        outcome="running",
        results=(),
        ledger=ledger,
        events=(*whole(ledger=()).events[:3], updated, begun),
    )


def short():
    """A run of less than a second without a plan."""
    events = (event(1, 0, "run_started"), event(2, 0.4, "task_completed", outcome="answered"))
    return whole(
        outcome="answered", events=events, last_seen_at=at(0.4), ledger=(), plan=None, results=()
    )


RUNS = {
    "killed": whole(),
    "revised": revised(),
    "waiting": waiting(),
    "cut off": cut_off(),
    "waited for a person": stood_still("waiting"),
    "stopped": stood_still("interrupted"),
    "at work": at_work(),
    "short": short(),
}
