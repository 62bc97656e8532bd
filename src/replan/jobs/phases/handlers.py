"""What happens in each phase: recognise the command, collect, plan, and do it once confirmed."""

from dataclasses import replace

from replan.base.texts.storable import storable_text
from replan.base.values import text_or_json
from replan.jobs.actions import ActionCall, Outcome, UnsafeValueError, parameters_of
from replan.jobs.job import COMMAND, CONFIRMATION, IntermediateResult, Job, JobPhase, JobPlan
from replan.jobs.phases.job_turn import ProcessInput
from replan.jobs.phases.outputs import (
    Engine,
    PhaseHandler,
    ProcessOutput,
    ask,
    fail,
    go_on,
    too_many_corrections,
)
from replan.jobs.phases.planning import idempotency_key, with_plan
from replan.jobs.sayings import joined, say
from replan.jobs.spec.job_spec import JobCommand
from replan.jobs.spec.slot import ValidationIssue, text_in
from replan.jobs.views import shown_value

ANSWER = "answer"
"""What an action asks for that asks the user."""

ATTEMPTS = 3
"""How often an action is attempted at most, if it may be repeated."""

_LONGEST_SHOWN = 2_000


class ExecutionHandler(PhaseHandler):
    """Does the plan."""

    phase = JobPhase.EXECUTION
    next_phase = JobPhase.COMPLETED

    def hears(self, job: Job, turn: ProcessInput) -> bool:
        """False for the answer to the question of an action, which is the result of the action."""
        command = self._engine.spec.command(job.command)
        is_asked = command is not None and command.action == "ask_user"
        return not (is_asked and job.asked.names == (ANSWER,) and turn.message)

    async def process(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        """Execute the plan, after its confirmation if one is required."""
        spec = self._engine.spec
        command, plan = spec.command(job.command), job.plan
        if command is None or plan is None:
            return fail(job, "broken", "There is no plan.")
        if not turn.is_heard:
            result = Outcome(success=True, result=storable_text(turn.message))
            job = self._recorded(job, command, 1, idempotency_key(job, plan, 1), result)
            return self._completed(job, command)
        if spec.is_confirmed(command) and job.confirmed != plan.id:
            # A yes after a no may only acknowledge it.
            if turn.confirmed is not True or job.refused:
                job = job.replace(refused=turn.confirmed is False)
                question = self._confirmation(job, command, turn)
                if turn.confirmed is None and self._is_unclear(job, turn):
                    return self._asked_again(question, job)
                return question
            job = job.replace(confirmed=plan.id)
            turn.progressed = True
        return await self._done(job, command, plan, turn)

    def _confirmation(self, job: Job, command: JobCommand, turn: ProcessInput) -> ProcessOutput:
        """Show all values, and ask whether they are right; after a no, what can be done."""
        language, spec = job.language, self._engine.spec
        if job.refused:
            text = say("refused", language, name=self._first_slot(job))
        else:
            filled = [spec.slot(name) for name in command.slots if name in job.collected_info]
            lines = [f"- {shown_value(spec, job, slot.name)}" for slot in filled]
            called = command.called(language)
            text = say("confirm", language, command=called, values="\n".join(lines))
        keys = _keys_of(job)
        # What failed with other values is over, unless it may have taken effect.
        failed = [
            intermediate
            for intermediate in job.intermediate_results
            if not intermediate.success and (intermediate.in_doubt or intermediate.key in keys)
        ]
        for last in failed[-1:]:
            key = "doubt" if last.in_doubt else "earlier"
            text = f"{say(key, language, problem=_sentence(last.error_msg))}\n{text}"
        if remarks := self._engine.collector.generate_collection_prompt((), language, job.remarks):
            text = f"{remarks}\n{text}"
        return ask(self._engine, job.replace(remarks=()), turn, (CONFIRMATION,), text)

    def _is_unclear(self, job: Job, turn: ProcessInput) -> bool:
        """Whether a message answers the confirmation, and nothing was found in it."""
        is_answer = job.asked.names == (CONFIRMATION,) and turn.message and not turn.progressed
        return bool(is_answer) and not job.is_over and not turn.found.values

    def _asked_again(self, question: ProcessOutput, job: Job) -> ProcessOutput:
        """The confirmation, below the words that the answer to it was not understood."""
        text = say("unclear", job.language, name=self._first_slot(job))
        return replace(question, user_prompt=f"{text}\n{question.user_prompt}")

    def _first_slot(self, job: Job) -> str:
        """The name of a slot of the command, as an example of what can be changed."""
        spec = self._engine.spec
        for name in spec.slots_of(job.command):
            return spec.slot(name).called(job.language)
        return say("command", job.language)

    async def _done(
        self, job: Job, command: JobCommand, plan: JobPlan, turn: ProcessInput
    ) -> ProcessOutput:
        """Do the action for each item that is not done yet."""
        if command.action == "ask_user":
            return self._ask_question(job, plan, command, turn)
        for number, item in enumerate(plan.items, start=1):
            key = idempotency_key(job, plan, number)
            if any(
                intermediate.success and intermediate.key == key
                for intermediate in job.intermediate_results
            ):
                continue
            try:
                parameters = parameters_of(command, item, number)
            except UnsafeValueError as error:
                job = self._recorded(
                    job, command, number, key, Outcome(success=False, error=str(error))
                )
                return self._failed(job, str(error), in_doubt=False)
            call = ActionCall(
                spec=self._engine.spec,
                action=self._engine.spec.action_of(command),
                parameters=parameters,
                key=key,
                effects=self._engine.spec.effects_of(command),
                job=job,
            )
            job, outcome = await self._attempted(job, command, call, number)
            if not outcome.success:
                refused = self._refused(job, command, outcome)
                return refused or self._failed(job, outcome.error, in_doubt=outcome.in_doubt)
        return self._completed(job, command)

    async def _attempted(
        self, job: Job, command: JobCommand, call: ActionCall, number: int
    ) -> tuple[Job, Outcome]:
        """Do an action for an item, again if it may be repeated; each outcome is recorded."""
        problems = call.action.problems(call.parameters) if call.action.parameters else []
        if problems:
            outcome = Outcome(success=False, error=f"{call.action.type}: {'; '.join(problems)}.")
            return self._recorded(job, command, number, call.key, outcome), outcome
        outcome = Outcome(success=False)
        for _ in range(1 if call.unsafe else ATTEMPTS):
            outcome = await self._engine.executor.execute(call)
            job = self._recorded(job, command, number, call.key, outcome)
            if outcome.success or not outcome.is_transient:
                break
        return job, outcome

    def _recorded(
        self, job: Job, command: JobCommand, number: int, key: str, outcome: Outcome
    ) -> Job:
        step = f"{command.action}/{number}"
        result = IntermediateResult(
            step=step,
            result=outcome.result,
            timestamp=self._engine.clock(),
            success=outcome.success,
            error_msg=outcome.error,
            key=key,
            in_doubt=outcome.in_doubt,
        )
        return self._engine.tracker.record_progress(job, step, result)

    def _refused(self, job: Job, command: JobCommand, outcome: Outcome) -> ProcessOutput | None:
        """Remove the refused value and the values that depend on it, to ask for them again."""
        engine = self._engine
        name = command.refusals.get(str(outcome.status), "")
        if name not in job.collected_info or outcome.in_doubt or outcome.is_transient:
            return None
        slot = engine.spec.slot(name)
        value = job.collected_info[name]
        shown = "" if slot.secret else storable_text(slot.shown(value, job.language))[:60]
        text = _sentence(outcome.error)
        issue = ValidationIssue(field=name, message=text, code="refused", value=shown)
        gone = {name, *engine.spec.dependents_of(name)}
        kept = {value: v for value, v in job.collected_info.items() if value not in gone}
        # A slot that is only taken is needed from here on: its value was meant to be used.
        required = engine.spec.in_order((*job.required_info, name))
        job = job.replace(
            collected_info=kept,
            required_info=required,
            remarks=(*job.remarks, issue),
            corrections=job.corrections + 1,
            plan=None,
            confirmed="",
        ).noted("corrected", "refused", slots=(name,))
        collecting = ProcessOutput(job=job, next_phase=JobPhase.INFORMATION_COLLECTION)
        return too_many_corrections(engine, job) or collecting

    def _failed(self, job: Job, why: str, *, in_doubt: bool) -> ProcessOutput:
        # Whoever takes the job up again confirms it again.
        job, how = job.replace(confirmed=""), "in_doubt" if in_doubt else "failed"
        return fail(job, "action", say(how, job.language, problem=_sentence(why)))

    def _completed(self, job: Job, command: JobCommand) -> ProcessOutput:
        language, keys = job.language, _keys_of(job)
        results = [e.result for e in job.intermediate_results if e.success and e.key in keys]
        result = results[0] if len(results) == 1 else results
        done = text_in(command.done, language) or say(
            "done", language, command=command.called(language)
        )
        text = text_or_json(result)
        lines = [done]
        if result not in (None, "", [], {}):
            lines.append(say("result", language, result=text[:_LONGEST_SHOWN]))
        remarks = self._engine.collector.generate_collection_prompt((), language, job.remarks)
        job = job.replace(phase=JobPhase.COMPLETED, remarks=()).noted("ended", "completed")
        return ProcessOutput(
            job=job,
            next_phase=JobPhase.COMPLETED,
            user_prompt="\n".join(part for part in (remarks, *lines) if part),
            execution_result=result,
        )

    def _ask_question(
        self, job: Job, plan: JobPlan, command: JobCommand, turn: ProcessInput
    ) -> ProcessOutput:
        """Ask the question of the command; the next message is the answer."""
        question = parameters_of(command, plan.items[0], 1)
        text = str(question.get("question", ""))
        if expected := question.get("expected_format"):
            text = f"{text} ({expected})"
        return ask(self._engine, job, turn, (ANSWER,), text)


def _keys_of(job: Job) -> set[str]:
    """The keys of the planned actions."""
    if job.plan is None:
        return set()
    return {idempotency_key(job, job.plan, number) for number, _ in enumerate(job.plan.items, 1)}


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."


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
