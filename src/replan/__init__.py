"""Replan: plan-driven multi-agent work on LangGraph.

Names are loaded when they are first asked for, so that `from replan.plan import TaskPlan` loads no
framework.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replan.adapters.knowledge.folder import FolderRetriever
    from replan.adapters.knowledge.langchain import LangChainRetriever, VectorStoreRetriever
    from replan.adapters.knowledge.postgres_knowledge import PostgresRetriever
    from replan.adapters.storage.opening import open_storage
    from replan.assembly.agents import build_agent
    from replan.assembly.graphs import build_graph
    from replan.assembly.jobs import job_agent, job_processor
    from replan.assembly.pipelines import pipeline_agent, run_pipeline
    from replan.errors import (
        ConfigurationError,
        ContextError,
        InputError,
        JobError,
        JobFileError,
        JobSpecError,
        LimitReachedError,
        ModelCallError,
        PhaseError,
        PlanChangeError,
        PlanDocumentError,
        PlanError,
        QuestionError,
        ReplanError,
        RetrievalError,
        SessionBusyError,
        SessionConflictError,
        SettingsError,
        StaleThreadError,
        StorageError,
        SubThreadPathError,
        TeamError,
        TeamFileError,
        ThreadBusyError,
        ThreadError,
        ThreadLostError,
        ToolCallLostError,
        ToolServerError,
        UnknownStepError,
        UnpricedModelError,
        UsageError,
    )
    from replan.events.callbacks import MultiAgentCallback
    from replan.facts.kept import Fact
    from replan.jobs.job import Job, JobPhase
    from replan.jobs.processor import JobProcessor, ProcessResult
    from replan.jobs.spec.action_spec import ActionSpec, ParameterSpec
    from replan.jobs.spec.job_file import read_job_file
    from replan.jobs.spec.job_spec import Command, JobSpec
    from replan.jobs.spec.slot import Slot
    from replan.plan.markdown.document import PlanDocument
    from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, StepStatus, TaskPlan
    from replan.ports.agent import Agent
    from replan.ports.ask_user import ask_user
    from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
    from replan.ports.session_store import HistoryPage, SessionRecord, SessionStore
    from replan.ports.storage import Storage
    from replan.ports.thread_repository import ThreadRepository
    from replan.ports.tool_provider import ToolDefinition, ToolProvider
    from replan.runs.asked.asks import Ask
    from replan.runs.continued.resuming import raise_limits
    from replan.runs.log.event_log import RunEvent
    from replan.runs.looking import RunView
    from replan.runs.result import RunResult
    from replan.runs.run import Run
    from replan.runs.service import Runtime
    from replan.runs.summaries import read_summary, reset_summary, summarise
    from replan.runs.synchronous import SyncRuntime
    from replan.runs.travel.portable import PortableRun
    from replan.runtime import open_runtime, open_tools, run, run_sync, stream
    from replan.server.serving import open_server
    from replan.sessions.client.adapter import ClientAgentAdapter
    from replan.sessions.client.kept_turn import TakenBack
    from replan.state.enhanced import EnhancedState
    from replan.state.knowledge import Chunk, RAGOptions, Source
    from replan.state.limits import Budget, Limits, Price, RunSettings
    from replan.state.memory import MemoryOptions, Summary
    from replan.state.person.waiting import waiting_for
    from replan.state.pipeline.thread_paths import get_sub_thread_by_path, require_sub_thread
    from replan.state.pipeline.threads import Thread, ThreadMessage
    from replan.state.questions import Approval, Decision, Question
    from replan.state.results import (
        ActionType,
        Artifact,
        CollectedResults,
        ExecutionContext,
        ExecutionRecord,
        ExecutionStatus,
        FeedbackResult,
        SpecialistResult,
        TaskComplexity,
        ThinkingResult,
    )
    from replan.state.session.context import AgentContext, AgentResult, Message, ToolExecution
    from replan.state.usage import Usage
    from replan.team.fallback import Fallback
    from replan.team.host import Host
    from replan.team.specialist import Specialist
    from replan.team.team import Team
    from replan.team.tool_server import ToolServer
    from replan.threads.ai_adapter import AIAdapter
    from replan.threads.phases.agent_and_handler import BaseAgent, Operation, StateHandler
    from replan.threads.response import MessageUpdate, Response, SubThreadRequest
    from replan.threads.sub_threads.interaction_unit import InteractionUnit
    from replan.threads.sub_threads.sub_thread_agent import SubThreadAgent
    from replan.threads.sub_threads.sub_thread_handlers import (
        NestedSubThreadHandler,
        SubThreadExecutionHandler,
        SubThreadPreparationHandler,
    )
    from replan.threads.task import Task
    from replan.traces.option import Traces
    from replan.traces.otlp import open_traces

    MultiAgentConfig = Team

_PLACES = {
    "replan.adapters.knowledge.folder": "FolderRetriever",
    "replan.adapters.knowledge.langchain": "LangChainRetriever VectorStoreRetriever",
    "replan.adapters.knowledge.postgres_knowledge": "PostgresRetriever",
    "replan.adapters.storage.opening": "open_storage",
    "replan.assembly.agents": "build_agent",
    "replan.assembly.graphs": "build_graph",
    "replan.assembly.jobs": "job_agent job_processor",
    "replan.assembly.pipelines": "pipeline_agent run_pipeline",
    "replan.errors": (
        "ConfigurationError ContextError InputError JobError JobFileError JobSpecError "
        "LimitReachedError ModelCallError PhaseError PlanChangeError PlanDocumentError "
        "PlanError QuestionError ReplanError RetrievalError SessionBusyError "
        "SessionConflictError SettingsError StaleThreadError StorageError SubThreadPathError "
        "TeamError TeamFileError ThreadBusyError ThreadError ThreadLostError "
        "ToolCallLostError ToolServerError UnknownStepError UnpricedModelError UsageError"
    ),
    "replan.events.callbacks": "MultiAgentCallback",
    "replan.facts.kept": "Fact",
    "replan.jobs.job": "Job JobPhase",
    "replan.jobs.processor": "JobProcessor ProcessResult",
    "replan.jobs.spec.action_spec": "ActionSpec ParameterSpec",
    "replan.jobs.spec.job_file": "read_job_file",
    "replan.jobs.spec.job_spec": "Command JobSpec",
    "replan.jobs.spec.slot": "Slot",
    "replan.plan.markdown.document": "PlanDocument",
    "replan.plan.model": "PlanStep PlanUpdate PlanUpdateType StepStatus TaskPlan",
    "replan.ports.agent": "Agent",
    "replan.ports.ask_user": "ask_user",
    "replan.ports.retriever": "Retriever SearchRequest SearchResponse",
    "replan.ports.session_store": "HistoryPage SessionRecord SessionStore",
    "replan.ports.storage": "Storage",
    "replan.ports.thread_repository": "ThreadRepository",
    "replan.ports.tool_provider": "ToolDefinition ToolProvider",
    "replan.runs.asked.asks": "Ask",
    "replan.runs.continued.resuming": "raise_limits",
    "replan.runs.log.event_log": "RunEvent",
    "replan.runs.looking": "RunView",
    "replan.runs.result": "RunResult",
    "replan.runs.run": "Run",
    "replan.runs.service": "Runtime",
    "replan.runs.summaries": "read_summary reset_summary summarise",
    "replan.runs.synchronous": "SyncRuntime",
    "replan.runs.travel.portable": "PortableRun",
    "replan.runtime": "open_runtime open_tools run run_sync stream",
    "replan.server.serving": "open_server",
    "replan.sessions.client.adapter": "ClientAgentAdapter",
    "replan.sessions.client.kept_turn": "TakenBack",
    "replan.state.enhanced": "EnhancedState",
    "replan.state.knowledge": "Chunk RAGOptions Source",
    "replan.state.limits": "Budget Limits Price RunSettings",
    "replan.state.memory": "MemoryOptions Summary",
    "replan.state.person.waiting": "waiting_for",
    "replan.state.pipeline.thread_paths": "get_sub_thread_by_path require_sub_thread",
    "replan.state.pipeline.threads": "Thread ThreadMessage",
    "replan.state.questions": "Approval Decision Question",
    "replan.state.results": (
        "ActionType Artifact CollectedResults ExecutionContext ExecutionRecord "
        "ExecutionStatus FeedbackResult SpecialistResult TaskComplexity ThinkingResult"
    ),
    "replan.state.session.context": "AgentContext AgentResult Message ToolExecution",
    "replan.state.usage": "Usage",
    "replan.team.fallback": "Fallback",
    "replan.team.host": "Host",
    "replan.team.specialist": "Specialist",
    "replan.team.team": "Team",
    "replan.team.tool_server": "ToolServer",
    "replan.threads.ai_adapter": "AIAdapter",
    "replan.threads.phases.agent_and_handler": "BaseAgent Operation StateHandler",
    "replan.threads.response": "MessageUpdate Response SubThreadRequest",
    "replan.threads.sub_threads.interaction_unit": "InteractionUnit",
    "replan.threads.sub_threads.sub_thread_agent": "SubThreadAgent",
    "replan.threads.sub_threads.sub_thread_handlers": (
        "NestedSubThreadHandler SubThreadExecutionHandler SubThreadPreparationHandler"
    ),
    "replan.threads.task": "Task",
    "replan.traces.option": "Traces",
    "replan.traces.otlp": "open_traces",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "AIAdapter",
    "ActionSpec",
    "ActionType",
    "Agent",
    "AgentContext",
    "AgentResult",
    "Approval",
    "Artifact",
    "Ask",
    "BaseAgent",
    "Budget",
    "Chunk",
    "ClientAgentAdapter",
    "CollectedResults",
    "Command",
    "ConfigurationError",
    "ContextError",
    "Decision",
    "EnhancedState",
    "ExecutionContext",
    "ExecutionRecord",
    "ExecutionStatus",
    "Fact",
    "Fallback",
    "FeedbackResult",
    "FolderRetriever",
    "HistoryPage",
    "Host",
    "InputError",
    "InteractionUnit",
    "Job",
    "JobError",
    "JobFileError",
    "JobPhase",
    "JobProcessor",
    "JobSpec",
    "JobSpecError",
    "LangChainRetriever",
    "LimitReachedError",
    "Limits",
    "MemoryOptions",
    "Message",
    "MessageUpdate",
    "ModelCallError",
    "MultiAgentCallback",
    "NestedSubThreadHandler",
    "Operation",
    "ParameterSpec",
    "PhaseError",
    "PlanChangeError",
    "PlanDocument",
    "PlanDocumentError",
    "PlanError",
    "PlanStep",
    "PlanUpdate",
    "PlanUpdateType",
    "PortableRun",
    "PostgresRetriever",
    "Price",
    "ProcessResult",
    "Question",
    "QuestionError",
    "RAGOptions",
    "ReplanError",
    "Response",
    "RetrievalError",
    "Retriever",
    "Run",
    "RunEvent",
    "RunResult",
    "RunSettings",
    "RunView",
    "Runtime",
    "SearchRequest",
    "SearchResponse",
    "SessionBusyError",
    "SessionConflictError",
    "SessionRecord",
    "SessionStore",
    "SettingsError",
    "Slot",
    "Source",
    "Specialist",
    "SpecialistResult",
    "StaleThreadError",
    "StateHandler",
    "StepStatus",
    "Storage",
    "StorageError",
    "SubThreadAgent",
    "SubThreadExecutionHandler",
    "SubThreadPathError",
    "SubThreadPreparationHandler",
    "SubThreadRequest",
    "Summary",
    "SyncRuntime",
    "TakenBack",
    "Task",
    "TaskComplexity",
    "TaskPlan",
    "Team",
    "TeamError",
    "TeamFileError",
    "ThinkingResult",
    "Thread",
    "ThreadBusyError",
    "ThreadError",
    "ThreadLostError",
    "ThreadMessage",
    "ThreadRepository",
    "ToolCallLostError",
    "ToolDefinition",
    "ToolExecution",
    "ToolProvider",
    "ToolServer",
    "ToolServerError",
    "Traces",
    "UnknownStepError",
    "UnpricedModelError",
    "Usage",
    "UsageError",
    "VectorStoreRetriever",
    "ask_user",
    "build_agent",
    "build_graph",
    "get_sub_thread_by_path",
    "job_agent",
    "job_processor",
    "open_runtime",
    "open_server",
    "open_storage",
    "open_tools",
    "open_traces",
    "pipeline_agent",
    "raise_limits",
    "read_job_file",
    "read_summary",
    "require_sub_thread",
    "reset_summary",
    "run",
    "run_pipeline",
    "run_sync",
    "stream",
    "summarise",
    "waiting_for",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        try:
            return version("replan")
        except PackageNotFoundError:
            return "0+source"
    if name == "MultiAgentConfig":
        from replan.declared.part import tell_old_name  # noqa: PLC0415 - few ask for the old name

        tell_old_name("MultiAgentConfig", "Team", stacklevel=2)
        name = "Team"
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'replan' has no attribute {name!r}")
    value = getattr(import_module(_PLACE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
