"""Actions on record, so that none is done twice."""

from dataclasses import dataclass

from langchain_core.messages import ToolCall

from replan.base.errors import InDoubtError
from replan.base.failures import describe
from replan.base.values import json_text, restored
from replan.jobs.actions import ActionCall, Executor, Outcome
from replan.jobs.views import without_secrets
from replan.log.run_log import RunLog
from replan.log.transcript import ToolRun, Transcript
from replan.ports.ask_user import ask
from replan.ports.run_context import reported_tool_call
from replan.state.person.answers import ask_what_became_of

ACTION = "job/"
"""What the places of a job's actions begin with in its record."""


@dataclass(frozen=True)
class RecordedExecutor:
    """Does actions through the record that tool loops have, too."""

    executor: Executor
    record: Transcript

    async def execute(self, call: ActionCall) -> Outcome:
        """Return the record of an action; else do it, unless it may have been done."""
        note_key = f"{ACTION}{call.key}"
        kept = await self.record.outcome(note_key)
        if kept is not None:
            return restored(Outcome, kept)
        settled = await self._settled(call, note_key)
        if settled is None:
            settled = await self._done(call, note_key)
        if settled.success or not (settled.is_transient or settled.in_doubt):
            outcome = settled.model_dump(mode="json")
            await self.record.end(note_key, outcome, has_acted=settled.success)
        elif not settled.in_doubt:
            # It has had no effect, and may be attempted again.
            await self.record.forget(note_key)
        return settled

    async def _done(self, call: ActionCall, note_key: str) -> Outcome:
        is_told = self.record.on_doubt == "tell"
        run = ToolRun(
            tool=call.action.type,
            arguments=without_secrets(call.spec, call.job, dict(call.parameters)),
            effects=call.effects,
            attempt=1 + _doubts(call) if is_told else self.record.attempt,
        )
        await self.record.begin(note_key, run)
        name, approval = call.action.type, "approved" if call.job.confirmed else None
        called = ToolCall(name=name, args=dict(run.arguments), id=call.key)
        with reported_tool_call(note_key, called, call.effects, approval) as reported:
            outcome = await self.executor.execute(call)
            text = outcome.error or json_text(outcome.result)
            reported.ends(
                "success" if outcome.success else "failed",
                without_secrets(call.spec, call.job, text),
            )
        return outcome

    async def _settled(self, call: ActionCall, note_key: str) -> Outcome | None:
        """Return the outcome of an action that was cut off; None if it can be done."""
        begun = await self.record.begun(note_key)
        if begun is None or begun.effects != "unsafe":
            return None
        what = f"The action {begun.tool} of {call.job.command}"
        error = InDoubtError(what, begun.attempt)
        # The user knows of each attempt before, and has confirmed the action since.
        if self.record.on_doubt == "tell" and _doubts(call) >= begun.attempt:
            return None
        if self.record.on_doubt != "ask":
            return Outcome(success=False, error=describe(error), in_doubt=True)
        details = begun.model_dump(mode="json")
        verdict = ask_what_became_of(what, begun.attempt, details, ask)
        match verdict.action:
            case "run again":
                return None
            case "done":
                return Outcome(success=True, result=verdict.text or "Done.")
            case "fail":
                return Outcome(success=False, error=verdict.text or str(error))


@dataclass(frozen=True)
class LoggedExecutor:
    """Does actions on record, each job in its own record, where no run has one.

    If it is unknown whether an unsafe action took effect, the job fails and says so. If
    the job is resumed and confirmed again, the action is done again.
    """

    executor: Executor
    log: RunLog

    async def execute(self, call: ActionCall) -> Outcome:
        """Return what is on record of an action; else do it."""
        record = Transcript(self.log, f"job/{call.job.id}", call.job.id, "tell")
        return await RecordedExecutor(self.executor, record).execute(call)


def _doubts(call: ActionCall) -> int:
    """How many attempts may or may not have taken effect."""
    results = call.job.intermediate_results
    return sum(intermediate.key == call.key and intermediate.in_doubt for intermediate in results)
