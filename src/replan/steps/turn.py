"""One step at one specialist in one round: recalled, parked, skipped or done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import Runtime

from replan.events.emitter import Emitter
from replan.events.types import SpecialistCompleted, SpecialistParked
from replan.plan.dependencies import readiness
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.ports.journal import LedgerEntry
from replan.services import Services
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import LimitHit, RunSettings
from replan.state.questions import Question
from replan.state.results import ExecutionStatus, SpecialistResult, result_key
from replan.state.rules import round_results
from replan.state.usage import TokenCount
from replan.steps.attempts import Tries
from replan.steps.board import Board, Outcome
from replan.steps.contexts import context_of
from replan.steps.on_record import OnRecord, as_first_known, keys_in, tries_of
from replan.steps.outcomes import inputs_of, results_in, settled
from replan.steps.step_questions import StepQuestions
from replan.steps.superstep import Sent, can_wait


@dataclass
class Turn:
    """What it takes to settle one seat of the board.

    Attributes:
        asked: The questions that the step waits for, once it was tried.
        limit: The limit of the run that kept the step from being done, if one did.
        part: What was made of the step all the same, or none.
    """

    step: PlanStep
    specialist: str
    plan: TaskPlan
    state: EnhancedState
    board: Board
    emitter: Emitter
    services: Services
    runtime: Runtime[RunSettings]
    config: RunnableConfig
    asked: list[Question] = field(default_factory=list[Question])
    limit: LimitHit | None = None
    part: SpecialistResult | None = None

    @classmethod
    def of(
        cls,
        sent: Sent,
        board: Board,
        services: Services,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
    ) -> Self:
        """Take what was sent to the round's board."""
        state = board.state
        plan = state.get("current_plan") or TaskPlan()
        return cls(
            step=plan.step(sent["step_id"]),
            specialist=sent["specialist"],
            plan=plan,
            state=state,
            board=board,
            emitter=Emitter(
                write=runtime.stream_writer,
                hooks=services.hooks.of(state.get("run_id", "")),
                run_id=state.get("run_id", ""),
                round=state.get("current_round", 1),
            ),
            services=services,
            runtime=runtime,
            config=config,
        )

    @property
    def key(self) -> str:
        """The key of the seat and of its result."""
        return result_key(self.step.id, self.specialist)

    async def recorded(self) -> SpecialistResult | None:
        """The result that is already on record, published; none if there is none."""
        recorded = await self._journal()
        result = recorded.known.get(self.key)
        return None if result is None else self._recall(result)

    def _recall(self, result: SpecialistResult) -> SpecialistResult:
        """Publish a result that is on record."""
        if result.round == self._round:
            self.board.publish(self.key, result)
            return result
        # Its calls were counted in the round that made them.
        result = result.replace(round=self._round, usage=TokenCount())
        self.board.publish_earlier(self.key, result)
        return result

    async def take(self) -> SpecialistResult | None:
        """Do the step if its turn comes in this round."""
        awaited, results = await self._awaited()
        match readiness(self.step, awaited):
            case "skip":
                self.board.publish(self.key, "skipped")
                return None
            case "ready":
                pass
            case _:
                return await self._park(awaited)
        inputs = inputs_of(self.step, awaited, results)
        # What it waits for may have been done again, and have come to the same.
        recorded = (await self._journal()).answer(self.state, self.step, self.specialist, inputs)
        if recorded is not None:
            return self._recall(recorded)
        async with self.board.slots.take(self.step.priority):
            if self.runtime.drain_requested:
                # Not parked: the round is not over, and goes on here when the run does.
                raise GraphDrained(self.runtime.drain_reason or "stopped")
            if await self._is_halted():
                return await self._park({})
            return await self._work(inputs)

    async def _work(self, inputs: Mapping[int, str]) -> SpecialistResult | None:
        tried = await self._tried()
        keys = keys_in(self.state, self.step, self.specialist, inputs)
        keys = as_first_known(keys, self.state, self.step, self.specialist, tried)
        tries = Tries(
            specialist=self.services.specialists[self.specialist],
            context=context_of(
                self.step,
                inputs,
                keys.idempotency,
                self.state,
                self.services,
                messages=self.board.conversation,
            ),
            keys=keys,
            limits=settings_of(self.state).limits,
            services=self.services,
            emitter=self.emitter,
            config=self.config,
            questions=await StepQuestions.of(
                self.step.id, self.specialist, self.state, self.board, self.services
            ),
            tried=tried,
            before=(await self._journal()).before(self.state, self.key) if tried else None,
            on_doubt=settings_of(self.state).on_doubt if can_wait(self.config) else "fail",
        )
        result = await tries.run()
        if isinstance(result, LimitHit):
            self.limit, self.part = result, tries.part
            return await self._park({})
        if isinstance(result, list):
            self.asked = result
            return None
        if tries.is_recalled:
            return self._recall(result)
        self.emitter.stream(
            SpecialistCompleted,
            step_id=self.step.id,
            specialist=self.specialist,
            attempt=tries.number,
            result=result,
        )
        self.board.publish(self.key, result)
        return result

    async def _awaited(
        self,
    ) -> tuple[dict[int, PlanStep], dict[int, list[SpecialistResult]]]:
        """The steps that this one waits for, as they have come to be, and results by step."""
        steps, results = dict[int, PlanStep](), results_in(self.state)
        for step_id in self.step.awaits:
            step = self.plan.step(step_id)
            if step.status in (StepStatus.PENDING, StepStatus.EXECUTING):
                step, results[step_id] = await self._ended(step)
            steps[step_id] = step
        return steps, results

    async def _ended(self, step: PlanStep) -> tuple[PlanStep, list[SpecialistResult]]:
        """A step of this round with what came of it; as it was if that will not come."""
        known = self.board.ended.get(step.id)
        if known is None:
            outcomes = await self._outcomes(step)
            known = _after(step, outcomes), _results_of(outcomes)
            if known[0] is not step:
                self.board.ended[step.id] = known
        return known

    async def _outcomes(self, step: PlanStep) -> list[Outcome]:
        """What came of a step at each specialist that this round sent it to."""
        recorded = await self._journal()
        # What LangGraph does not run again has no seat: a left out step has no result either.
        otherwise: Outcome = "skipped" if step.id in recorded.left_out else None
        outcomes: list[Outcome] = []
        for assignment in self.state.get("dispatched", []):
            if assignment.refused and assignment.step_id == step.id:
                outcomes.append(round_results(self.state).get(assignment.key))
            elif assignment.step_id == step.id:
                outcome = await self.board.outcome(assignment.key)
                outcomes.append(outcome or recorded.known.get(assignment.key) or otherwise)
        return outcomes

    async def _park(self, awaited: Mapping[int, PlanStep]) -> None:
        waiting_for = [i for i, step in awaited.items() if not step.is_finished]
        self.emitter.stream(
            SpecialistParked,
            step_id=self.step.id,
            specialist=self.specialist,
            waiting_for=tuple(waiting_for),
        )

    async def _is_halted(self) -> bool:
        """Whether nothing more may start in this round: a wish to revise, a failure that halts."""
        recorded = (await self._journal()).known.values()
        results = [*self.board.published(), *(r for r in recorded if r.round == self._round)]
        # Steps that nobody does have failed before anything of the round began.
        results += round_results(self.state).values()
        halts = settings_of(self.state).on_failure == "halt"
        return any(
            result.replan_needed or (halts and result.status is not ExecutionStatus.SUCCESS)
            for result in results
        )

    async def _journal(self) -> OnRecord:
        return await self.board.recall(self.services.journal, self.state)

    async def _tried(self) -> Sequence[LedgerEntry]:
        run_id = self.state.get("run_id", "")
        ledger = await self.board.tried(self.services.journal, run_id)
        return tries_of(ledger, self.step.id, self.specialist)

    @property
    def _round(self) -> int:
        return self.state.get("current_round", 1)


def _results_of(outcomes: Sequence[Outcome]) -> list[SpecialistResult]:
    return [outcome for outcome in outcomes if isinstance(outcome, SpecialistResult)]


def _after(step: PlanStep, outcomes: Sequence[Outcome]) -> PlanStep:
    """The step with what came of it; as it was if one of its outcomes will not come."""
    if "skipped" in outcomes:
        return step.replace(status=StepStatus.SKIPPED)
    results = _results_of(outcomes)
    return settled(step, results) if results and len(results) == len(outcomes) else step
