"""One attempt of a step: what its work may use, in the run's process or in a worker of a queue."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.events.calls import Calls
from replan.events.emitter import Emitter
from replan.failures import describe
from replan.langgraph_inside.tasks import (
    config_inside,
    inherited_config,
    runtime_in,
    with_handlers,
)
from replan.log.transcript import Transcript
from replan.ports.context import using
from replan.ports.specialist_port import SpecialistPort
from replan.services import Services
from replan.spending.deadline import in_time, watched
from replan.spending.meter import Meter
from replan.spending.scopes import step_scopes
from replan.state.limits import RunSettings
from replan.state.results import ExecutionContext, SpecialistResult, storable_result
from replan.steps.step_record import Asker

Work = Callable[[ExecutionContext, RunnableConfig], Coroutine[Any, Any, SpecialistResult]]


# The log is always that of the run. So the calls of a worker reserve what the run may spend, a loop
# of tools finds the calls that are on record, and a repetition has the same keys.
@dataclass(kw_only=True)
class Attempt:
    """What an attempt works with; made of the step's record, or of the job of a queue."""

    context: ExecutionContext  # what the specialist sees
    specialist: SpecialistPort
    services: Services
    settings: RunSettings
    emitter: Emitter
    asker: Asker
    make_transcript: Callable[[], Transcript]
    thread_id: str  # where a pipeline keeps what it does for the step
    config: RunnableConfig = field(default_factory=RunnableConfig)  # the caller's
    on_token: Callable[[str], None] | None = None
    tries: int | None = None  # what is left of them for its models; None: all
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        self.meter = self.new_meter(f"specialist_{self._name}", self.on_token)

    @property
    def _name(self) -> str:
        return self.specialist.card.name

    @property
    def names(self) -> dict[str, object]:
        step_id, attempt = self.context.plan_step.id, self.context.attempt
        return {"step_id": step_id, "specialist": self._name, "attempt": attempt}

    def new_meter(self, node: str, on_token: Callable[[str], None] | None = None) -> Meter:
        """Make what counts, charges and reports calls of models for the step."""
        services, calls = self.services, None
        if self.emitter.is_heard:
            calls = Calls(
                emitter=self.emitter,
                config=self.config,
                about={"node": node, **self.names},
                effects=self.specialist.card.effects,
            )
        return Meter(
            services.accounts.of(services.log, self.context.run_id),
            step_scopes(self.settings.limits, services, self._name, self.context.plan_step.id),
            new_id=services.new_id,
            prices=services.prices,
            on_token=on_token,
            calls=calls,
        )

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[RunnableConfig]:
        """Let the code of a block use it, and give the configuration for it; then end it."""
        services = self.services
        key = {"idempotency_key": self.context.idempotency_key}
        metered = with_handlers(self.config, self.meter.handlers, metadata=key)
        config, runtime = config_inside(metered, RunSettings), runtime_in(self.config)
        at_work = using(
            run_id=self.context.run_id,
            node="specialist",
            emitter=self.emitter,
            config=self.config,
            calls=self.meter.calls,
            step_id=self.context.plan_step.id,
            specialist=self._name,
            asker=self.asker,
            folders=services.folders,
            threads=services.threads,
            thread_id=self.thread_id,
            make_transcript=self.make_transcript,
            facts=services.facts(self.settings, runtime and runtime.store),
            clock=services.clock,
            new_id=services.new_id,
            tries=self.tries,
            # A team inside the step has no session: nobody would take what it changes of it.
            session=None,
        )
        # Code that does not get the configuration as an argument finds it here.
        around = inherited_config.set(config)
        try:
            with closing(self.asker), at_work:
                async with self.meter:
                    yield config
        finally:
            inherited_config.reset(around)

    async def result(self, work: Work, seconds: float = math.inf) -> SpecialistResult:
        """Do the work in its context, and within its time."""
        async with self.at_work() as config:
            do = partial(self._do, work, config)
            return await in_time(do, self.meter, seconds, self._idle)

    @property
    def _idle(self) -> float | None:
        """The seconds that it may take without a sign of work; the shorter bound counts."""
        bounds = (self.context.plan_step.idle_timeout, self.settings.limits.idle_timeout)
        return min((each for each in bounds if each is not None), default=None)

    async def _do(self, work: Work, config: RunnableConfig) -> SpecialistResult:
        about = {"run_id": self.context.run_id, **self.names}
        try:
            given = await watched(work(self.context, config), about)
            return storable_result(SpecialistResult.model_validate(given))
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
