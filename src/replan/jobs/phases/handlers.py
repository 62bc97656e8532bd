"""What happens in the phases before execution: recognise the command, collect, and plan."""

from replan.jobs.job import COMMAND, Job, JobPhase
from replan.jobs.phases.execution import ExecutionHandler
from replan.jobs.phases.job_turn import ProcessInput
from replan.jobs.phases.outputs import (
    Engine,
    PhaseHandler,
    ProcessOutput,
    ask,
    fail,
    go_on,
)
from replan.jobs.phases.planning import with_plan
from replan.jobs.sayings import joined, say
from replan.jobs.spec.slot import text_in


class IntentRecognitionHandler(PhaseHandler):
    """Finds out which command is wanted."""

    phase = JobPhase.INTENT_RECOGNITION
    next_phase = JobPhase.INFORMATION_COLLECTION

    async def process(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        """Go on with the command that was recognised, or ask which one is wanted."""
        if job.command:
            return go_on(job, self.next_phase)
        spec, language = self._engine.spec, job.language
        called = joined([command.called(language) for command in spec.commands], language)
        question = text_in(spec.question, language) or say("which", language, commands=called)
        return ask(self._engine, job, turn, (COMMAND,), question)


class InformationCollectionHandler(PhaseHandler):
    """Collects what the command needs."""

    phase = JobPhase.INFORMATION_COLLECTION
    next_phase = JobPhase.PLAN_GENERATION

    async def process(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        """Ask for what is missing or wrong."""
        engine = self._engine
        wrong = tuple(issue.field for issue in job.validation_errors)
        names = tuple(dict.fromkeys((*engine.spec.in_order(job.missing_info), *wrong)))
        if not names:
            return go_on(job, self.next_phase)
        issues = (*job.remarks, *job.validation_errors)
        prompt = engine.collector.generate_collection_prompt(names, job.language, issues)
        return ask(engine, job.replace(remarks=()), turn, names, prompt)


class PlanGenerationHandler(PhaseHandler):
    """Makes the plan from the collected values."""

    phase = JobPhase.PLAN_GENERATION
    next_phase = JobPhase.EXECUTION

    def hears(self, job: Job, turn: ProcessInput) -> bool:
        """A plan is made without the user."""
        return False

    async def process(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        """Make the plan with its id; values that the planner needs are collected first."""
        if job.plan is not None and job.plan.id:
            return go_on(job, self.next_phase)
        spec = self._engine.spec
        draft = await self._engine.planner.plan(spec, job)
        known = spec.slots_of(job.command)
        lacks = [name for name in draft.lacks if name in known and name not in job.collected_info]
        if lacks:
            required = spec.in_order((*job.required_info, *lacks))
            job = job.replace(required_info=required, plan=None)
            return go_on(job, JobPhase.INFORMATION_COLLECTION)
        if draft.lacks or not draft.items:
            return fail(job, "broken", "The planner gave no plan, and asks for nothing new.")
        job = with_plan(spec, job, draft.items)
        return go_on(job.replace(validation_errors=()), self.next_phase)


def handlers_of(engine: Engine) -> tuple[PhaseHandler, ...]:
    """The handlers of the four phases in which something happens."""
    return (
        IntentRecognitionHandler(engine),
        InformationCollectionHandler(engine),
        PlanGenerationHandler(engine),
        ExecutionHandler(engine),
    )
