"""Jobs: what processes those of a spec, and the agent that is one job."""

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from replan.assembly.agents import build_agent
from replan.assembly.environment import chosen_models, now, random_id
from replan.base.errors import ConfigurationError
from replan.jobs.action_executor import ActionExecutor
from replan.jobs.actions import Executor
from replan.jobs.extraction.by_model import ModelExtractor, RulesThenModel
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.extraction.port import Extractor
from replan.jobs.job_api import ApiExecutor
from replan.jobs.phases.corrector import PhaseCorrector
from replan.jobs.phases.handlers import handlers_of
from replan.jobs.phases.outputs import Engine, PhaseHandler
from replan.jobs.phases.planning import Planner
from replan.jobs.processor import JobProcessor
from replan.jobs.recorded import LoggedExecutor
from replan.jobs.spec.job_file import read_job_file
from replan.jobs.spec.job_spec import JobSpec
from replan.log.run_log import RunLog
from replan.ports.model_provider import ModelProvider
from replan.sessions.stateless_agent import StatelessAgent
from replan.team.chats import Chats
from replan.team.specialist import Specialist
from replan.team.team import Team


def job_processor(  # noqa: PLR0913 - what a job leaves open
    spec: JobSpec | Path | str,
    *,
    model: BaseChatModel | str | None = None,
    base_url: str | None = None,
    models: ModelProvider | None = None,
    log: RunLog | None = None,
    clock: Callable[[], datetime] | None = None,
    new_id: Callable[[], str] | None = None,
    extractor: Extractor | None = None,
    planner: Planner | None = None,
    corrector: PhaseCorrector | None = None,
    handlers: Callable[[Engine], Iterable[PhaseHandler]] = handlers_of,
) -> JobProcessor:
    """Build a processor for the jobs of a spec, with the usual parts.

    Args:
        spec: The spec, or the path of a job file.
        model: Reads what the rules do not understand: a chat model or its name. Without it, only
            the rules read.
        base_url: The OpenAI-compatible server of models that are given by name.
        models: Builds models from names, instead of the server and the environment.
        log: Records actions before and after they are done, so that an unsafe one is not done
            again after its process was killed: the log of a storage from `open_storage`.
        clock: Returns the time, with a time zone.
        new_id: Returns a new id for a job.
        extractor: Reads messages, if not the rules and the model; then `model` has no use.
        planner: Makes plans, if not one of all values.
        corrector: Corrects phases, if not by the usual rules.
        handlers: Makes the handlers of the phases, if not the usual ones.

    Raises:
        ConfigurationError: The model cannot be used, or both it and an extractor are given.
        JobFileError: The job file has mistakes.
    """
    provider = chosen_models(models, base_url)
    read = spec if isinstance(spec, JobSpec) else read_job_file(Path(spec))
    clock = clock or now
    chats = Chats(provider)
    if extractor is not None and model is not None:
        fix = "Give one of them; an extractor reads messages in place of the model."
        raise ConfigurationError("model", model, "an extractor is given, too", fix)
    extractor = extractor or RuleExtractor()
    if model is not None:
        extractor = RulesThenModel(ModelExtractor(chats.of(model)))
    executor: Executor = ActionExecutor(ApiExecutor(os.environ), lambda: clock().date())
    if log is not None:
        executor = LoggedExecutor(executor, log)
    return JobProcessor(
        read,
        extractor=extractor,
        executor=executor,
        clock=clock,
        new_id=new_id or random_id,
        planner=planner,
        corrector=corrector,
        handlers=handlers,
    )


def job_agent(
    spec: JobSpec | Path | str,
    *,
    model: BaseChatModel | str | None = None,
    context_key: str | bytes | None = None,
    **options: Any,
) -> StatelessAgent:
    """Build an agent for one job: each turn of a session is a message to the job.

    It is the agent of a team without a host, whose one specialist is the job. After
    each turn the job is in `project_state["job"]`; while it waits, the context carries its run, of
    which that is a copy.

    Args:
        spec: The spec, or the path of a job file.
        model: Reads what the rules do not understand: a chat model or its name.
        context_key: As for `build_agent`: it signs what contexts carry, and seals the values of
            secret slots. Without a key, the agent makes one of its own for a job with secret slots,
            so that no other agent can continue it.
        options: Other options of `build_agent`: base_url, models, store, tenant, clock, new_id.

    Raises:
        ConfigurationError: The model or the key cannot be used, or the extra `encryption` is
            missing, which secret slots need.
        JobFileError: The job file has mistakes.
    """
    team = job_team(spec, model=model)
    return build_agent(team, context_key=context_key, **options)


def job_team(
    spec: JobSpec | Path | str,
    *,
    model: BaseChatModel | str | None = None,
    **fields: Any,
) -> Team:
    """The team of a job alone, without a host.

    Args:
        spec: The spec, or the path of a job file.
        model: Reads what the rules do not understand.
        fields: Other fields of the team.
    """
    spec = spec if isinstance(spec, JobSpec) else read_job_file(Path(spec))
    asking = Specialist(
        spec.name,
        "Asks for what the job needs, and does it.",
        job=spec,
        extraction_model=model,
    )
    return Team([asking], name=spec.name, **fields)
