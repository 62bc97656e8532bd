"""One step of one specialist in one round: recalled, deferred, skipped, or done and on record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import Runtime

from replan.base.langgraph_inside.tasks import is_checkpointed
from replan.log.events.emitter import Emitter
from replan.log.events.types import MemoryApplied, StepDeferred
from replan.plan.dependencies import readiness
from replan.plan.model import PlanStep, StepStatus
from replan.ports.run_context import here
from replan.specialists.services import Services
from replan.specialists.steps.attempts import Attempts, Recalled
from replan.specialists.steps.board import Board, Outcome
from replan.specialists.steps.enrichment import own_memory
from replan.specialists.steps.on_record import keys_in
from replan.specialists.steps.step_record import StepRecord
from replan.state.conversation.conversation import Seen, resolved
from replan.state.enhanced import EnhancedState
from replan.state.limits import LimitHit, RunSettings
from replan.state.questions import Question
from replan.state.results import (
    Assignment,
    ExecutionContext,
    SpecialistResult,
    inputs_of,
    result_key,
    results_by_step,
    settled,
)
from replan.state.step_options import without_options
from replan.state.usage import TokenCount


@dataclass
class StepRun:
    """One step of one specialist in one round: recalled, deferred, skipped or done."""

    step: PlanStep
    specialist: str
    board: Board
    emitter: Emitter
    services: Services
    runtime: Runtime[RunSettings]
    config: RunnableConfig
    in_round: bool = True  # whether this is its turn in the round; else a task has it there again
    # The questions that the step waits for, after an attempt.
    asked: list[Question] = field(default_factory=list[Question])
    # The limit of the run that stopped the step, or None.
    limit: LimitHit | None = None
    part: SpecialistResult | None = None  # the partial result at that limit, or None

    @classmethod
    def of(
        cls,
        sent: Assignment,
        board: Board,
        services: Services,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
        *,
        in_round: bool = True,
    ) -> Self:
        run_id = board.state.get("run_id", "")
        hooks = services.hooks.of(run_id)
        keeps_prompts = board.settings.keep_prompts
        emitter = here().emitter_for(
            runtime.stream_writer, hooks, run_id, board.round, keeps_prompts=keeps_prompts
        )
        step = board.step(sent.step_id)
        return cls(step, sent.specialist, board, emitter, services, runtime, config, in_round)

    @property
    def key(self) -> str:
        return result_key(self.step.id, self.specialist)

    async def result(self) -> SpecialistResult | None:
        """The recorded result, else the result of the step; None leaves the step pending."""
        await self.board.load(self.services.log)
        recorded = self.board.recorded.known.get(self.key)
        if recorded is not None:
            return self._recall(recorded)
        return await self._do_in_turn() or self.part

    def take_over(self, early: "StepRun", result: SpecialistResult | None) -> None:
        """Take the outcome of its own run that began before the round."""
        self.emitter.warnings.extend(early.emitter.warnings)
        self.asked, self.limit, self.part = early.asked, early.limit, early.part
        if result is not None and self.limit is None:
            self.board.publish(self.key, result)

    def update(self, result: SpecialistResult | None) -> EnhancedState:
        """What the step writes into the state, with its result or without one."""
        update: EnhancedState = {}
        if result is not None:
            update["current_specialist_results"] = {self.key: result}
        if self.asked:
            update["questions"] = {question.key: question for question in self.asked}
        if self.emitter.warnings:
            update["warnings"] = self.emitter.warnings
        if self.limit is not None:
            update["limit_hits"] = {self.key: self.limit}
        return update

    def _recall(self, result: SpecialistResult) -> SpecialistResult:
        """Take a recorded result; one of an earlier round costs nothing in this one."""
        if result.round == self.board.round:
            self.board.publish(self.key, result)
            return result
        # Its calls were counted in the round that made them.
        result = result.replace(round=self.board.round, usage=TokenCount())
        self.board.publish_earlier(self.key, result)
        return result

    async def _do_in_turn(self) -> SpecialistResult | None:
        """Do the step when its turn comes in this round."""
        inputs: Mapping[int, str] = {}
        if self.step.dependencies or self.step.condition:
            awaited, results = await self._dependencies()
            match readiness(self.step, awaited):
                case "skip":
                    self.board.publish(self.key, "skipped")
                    return None
                case "ready":
                    inputs = inputs_of(self.step, awaited, results)
                case _:
                    return self._park(awaited)
        # Its dependencies may have run again with the same results.
        board = self.board
        recorded = board.recorded.answer(board.state, self.step, self.specialist, inputs)
        if recorded is not None:
            return self._recall(recorded)
        async with board.slots.take(self.step.priority):
            if self.runtime.drain_requested:
                # Not deferred: the round is not over, and continues here when the run does.
                raise GraphDrained(self.runtime.drain_reason or "stopped")
            if await board.is_halted():
                return self._park({})
            board.begun.add(self.step.id)
            return await self._attempt(inputs)

    async def _attempt(self, inputs: Mapping[int, str]) -> SpecialistResult | None:
        """Do the step, now that its inputs are known and it has a place."""
        state, services, settings = self.board.state, self.services, self.board.settings
        keys = keys_in(state, self.step, self.specialist, inputs)
        seen = self._visible_conversation()
        context = context_of(self.step, inputs, keys.idempotency, state, services, seen)
        if (session := here().session) is not None:
            context = context.replace(session=session.copied())
        record = StepRecord(
            context,
            self.specialist,
            keys,
            self.board,
            services,
            self.emitter,
            # Without a checkpointer, no answer could reach the run.
            on_doubt=settings.on_doubt if is_checkpointed(self.config) else "fail",
        )
        await record.recall()
        attempts = Attempts(services.specialists[self.specialist], record, self.config)
        result = await attempts.run()
        if isinstance(result, LimitHit):
            self.limit, self.part = result, attempts.part
            return self._park({})
        if isinstance(result, list):
            self.asked = result
            return None
        if isinstance(result, Recalled):
            return self._recall(result.result)
        self.board.publish(self.key, result)
        return result

    def _visible_conversation(self) -> Seen:
        """What the specialist sees of the conversation; an event reports if the host sees more."""
        board, services = self.board, self.services
        if not self.step.parameters and self.specialist not in services.memory:
            return board.seen_as_host(services.prompts.memory)
        of_host = resolved(services.prompts.memory, board.settings.memory)
        memory = own_memory(self.step, self.specialist, board.state, services)
        seen = board.seen(memory)
        if memory != of_host and not seen.is_whole:
            names = {"step_id": self.step.id, "specialist": self.specialist}
            self.emitter.stream(
                MemoryApplied, node="specialist", **names, mode=memory.mode, **seen.numbers
            )
        return seen

    async def _dependencies(
        self,
    ) -> tuple[dict[int, PlanStep], dict[int, list[SpecialistResult]]]:
        """The steps that this one waits for, with their outcomes, and the results by step."""
        steps, results = dict[int, PlanStep](), results_by_step(self.board.state)
        for step_id in self.step.awaits:
            step = self.board.step(step_id)
            if step.status.is_open:
                step, results[step_id] = await self._settled_step(step)
            steps[step_id] = step
        return steps, results

    async def _settled_step(self, step: PlanStep) -> tuple[PlanStep, list[SpecialistResult]]:
        """A step of this round with its outcome; unchanged if the outcome will not come."""
        outcome = self.board.ended.get(step.id)
        if outcome is None:
            outcomes = await self._outcomes(step)
            outcome = _with_outcome(step, outcomes), _results_of(outcomes)
            if outcome[0] is not step:
                self.board.ended[step.id] = outcome
        return outcome

    async def _outcomes(self, step: PlanStep) -> list[Outcome]:
        """Wait for all specialists of a step; None for one without an outcome in this round."""
        recorded = self.board.recorded
        # Tasks that LangGraph does not run again have no seat, and a skipped step has no result.
        otherwise: Outcome = "skipped" if step.id in recorded.left_out else None
        outcomes: list[Outcome] = []
        for assignment in self.board.sent.get(step.id, ()):
            if assignment.refused:
                outcomes.append(self.board.refused(assignment.key))
            else:
                outcome = await self.board.outcome(assignment.key)
                outcomes.append(outcome or recorded.known.get(assignment.key) or otherwise)
        return outcomes

    def _park(self, awaited: Mapping[int, PlanStep]) -> None:
        """Report that the step stays pending in this round."""
        if not (self.in_round or self.limit):
            return
        waiting_for = [i for i, step in awaited.items() if not step.is_finished]
        self.emitter.stream(
            StepDeferred,
            step_id=self.step.id,
            specialist=self.specialist,
            waiting_for=tuple(waiting_for),
        )


def context_of(
    step: PlanStep,
    inputs: Mapping[int, str],
    idempotency_key: str,
    state: EnhancedState,
    services: Services,
    seen: Seen,
) -> ExecutionContext:
    shown = without_options(step.parameters) if step.parameters else step.parameters
    return ExecutionContext(
        task_description=step.description,
        plan_step=step.replace(parameters=shown) if shown is not step.parameters else step,
        messages=tuple(seen.messages),
        summary=seen.summary,
        parameters=shown,
        inputs=dict(inputs),
        workspace=None if services.workspace is None else str(services.workspace),
        idempotency_key=idempotency_key,
        run_id=state.get("run_id", ""),
        round=state.get("current_round", 1),
    )


def _results_of(outcomes: Sequence[Outcome]) -> list[SpecialistResult]:
    return [outcome for outcome in outcomes if isinstance(outcome, SpecialistResult)]


def _with_outcome(step: PlanStep, outcomes: Sequence[Outcome]) -> PlanStep:
    """The step with its outcome; unchanged if one of its outcomes will not come."""
    if "skipped" in outcomes:
        return step.replace(status=StepStatus.SKIPPED)
    results = _results_of(outcomes)
    return settled(step, results) if results and len(results) == len(outcomes) else step
