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
    from replan.adapters.knowledge.postgres import PostgresRetriever
    from replan.adapters.storage.opening import open_storage
    from replan.assembly import build_agent, build_graph
    from replan.errors import (
        ConfigurationError,
        ContextError,
        InputError,
        LimitReachedError,
        ModelCallError,
        PlanChangeError,
        PlanDocumentError,
        PlanError,
        QuestionError,
        ReplanError,
        RetrievalError,
        SessionBusyError,
        SessionConflictError,
        StorageError,
        TeamError,
        TeamFileError,
        ThreadBusyError,
        ThreadLostError,
        ToolCallLostError,
        ToolServerError,
        UnknownStepError,
        UnpricedModelError,
        UsageError,
    )
    from replan.events.callbacks import MultiAgentCallback
    from replan.facts.kept import Fact
    from replan.plan.markdown.document import PlanDocument
    from replan.plan.model import PlanStep, PlanUpdate, PlanUpdateType, StepStatus, TaskPlan
    from replan.ports.agent import Agent
    from replan.ports.ask_user import ask_user
    from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
    from replan.ports.session_store import HistoryPage, SessionRecord, SessionStore
    from replan.ports.storage import Storage
    from replan.ports.tool_provider import ToolDefinition, ToolProvider
    from replan.runs.asks import Ask
    from replan.runs.event_log import RunEvent
    from replan.runs.looking import RunView
    from replan.runs.portable import PortableRun
    from replan.runs.result import RunResult
    from replan.runs.run import Run
    from replan.runs.running import raise_limits
    from replan.runs.service import Runtime
    from replan.runs.summaries import read_summary, reset_summary, summarise
    from replan.runtime import SyncRuntime, open_runtime, open_tools, run, run_sync, stream
    from replan.sessions.client import ClientAgentAdapter
    from replan.sessions.kept_turn import TakenBack
    from replan.state.context import AgentContext, AgentResult, Message, ToolExecution
    from replan.state.enhanced import EnhancedState
    from replan.state.knowledge import Chunk, RAGOptions, Source
    from replan.state.limits import Budget, Limits, Price, RunSettings
    from replan.state.memory import MemoryOptions, Summary
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
    from replan.state.usage import Usage
    from replan.state.waiting import waiting_for
    from replan.team.fallback import Fallback
    from replan.team.host import Host
    from replan.team.specialist import Specialist
    from replan.team.team import Team
    from replan.team.tool_server import ToolServer
    from replan.traces.option import Traces
    from replan.traces.otlp import open_traces

    MultiAgentConfig = Team

_PLACES = {
    "replan.adapters.storage.opening": ("open_storage",),
    "replan.assembly": ("build_agent", "build_graph"),
    "replan.errors": (
        "ConfigurationError",
        "ContextError",
        "InputError",
        "LimitReachedError",
        "ModelCallError",
        "PlanChangeError",
        "PlanDocumentError",
        "PlanError",
        "QuestionError",
        "ReplanError",
        "RetrievalError",
        "SessionBusyError",
        "SessionConflictError",
        "StorageError",
        "TeamError",
        "TeamFileError",
        "ThreadBusyError",
        "ThreadLostError",
        "ToolCallLostError",
        "ToolServerError",
        "UnknownStepError",
        "UnpricedModelError",
        "UsageError",
    ),
    "replan.facts.kept": ("Fact",),
    "replan.events.callbacks": ("MultiAgentCallback",),
    "replan.plan.markdown.document": ("PlanDocument",),
    "replan.plan.model": ("PlanStep", "PlanUpdate", "PlanUpdateType", "StepStatus", "TaskPlan"),
    "replan.ports.session_store": ("HistoryPage", "SessionRecord", "SessionStore"),
    "replan.ports.storage": ("Storage",),
    "replan.ports.ask_user": ("ask_user",),
    "replan.ports.tool_provider": ("ToolDefinition", "ToolProvider"),
    "replan.runs.asks": ("Ask",),
    "replan.runs.event_log": ("RunEvent",),
    "replan.runs.looking": ("RunView",),
    "replan.runs.portable": ("PortableRun",),
    "replan.ports.agent": ("Agent",),
    "replan.runs.result": ("RunResult",),
    "replan.runs.run": ("Run",),
    "replan.runs.service": ("Runtime",),
    "replan.runtime": ("SyncRuntime", "open_runtime", "open_tools", "run", "run_sync", "stream"),
    "replan.sessions.client": ("ClientAgentAdapter",),
    "replan.sessions.kept_turn": ("TakenBack",),
    "replan.state.context": ("AgentContext", "AgentResult", "Message", "ToolExecution"),
    "replan.state.enhanced": ("EnhancedState",),
    "replan.adapters.knowledge.folder": ("FolderRetriever",),
    "replan.adapters.knowledge.langchain": ("LangChainRetriever", "VectorStoreRetriever"),
    "replan.adapters.knowledge.postgres": ("PostgresRetriever",),
    "replan.ports.retriever": ("Retriever", "SearchRequest", "SearchResponse"),
    "replan.state.knowledge": ("Chunk", "RAGOptions", "Source"),
    "replan.state.memory": ("MemoryOptions", "Summary"),
    "replan.state.limits": ("Budget", "Limits", "Price", "RunSettings"),
    "replan.state.questions": ("Approval", "Decision", "Question"),
    "replan.state.results": (
        "ActionType",
        "Artifact",
        "CollectedResults",
        "ExecutionContext",
        "ExecutionRecord",
        "ExecutionStatus",
        "FeedbackResult",
        "SpecialistResult",
        "TaskComplexity",
        "ThinkingResult",
    ),
    "replan.state.usage": ("Usage",),
    "replan.state.waiting": ("waiting_for",),
    "replan.team.fallback": ("Fallback",),
    "replan.team.host": ("Host",),
    "replan.team.specialist": ("Specialist",),
    "replan.team.team": ("Team",),
    "replan.team.tool_server": ("ToolServer",),
    "replan.traces.option": ("Traces",),
    "replan.traces.otlp": ("open_traces",),
    "replan.runs.running": ("raise_limits",),
    "replan.runs.summaries": ("read_summary", "reset_summary", "summarise"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "ActionType",
    "Agent",
    "AgentContext",
    "AgentResult",
    "Approval",
    "Artifact",
    "Ask",
    "Budget",
    "Chunk",
    "ClientAgentAdapter",
    "CollectedResults",
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
    "LangChainRetriever",
    "LimitReachedError",
    "Limits",
    "MemoryOptions",
    "Message",
    "ModelCallError",
    "MultiAgentCallback",
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
    "Question",
    "QuestionError",
    "RAGOptions",
    "ReplanError",
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
    "Source",
    "Specialist",
    "SpecialistResult",
    "StepStatus",
    "Storage",
    "StorageError",
    "Summary",
    "SyncRuntime",
    "TakenBack",
    "TaskComplexity",
    "TaskPlan",
    "Team",
    "TeamError",
    "TeamFileError",
    "ThinkingResult",
    "ThreadBusyError",
    "ThreadLostError",
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
    "open_runtime",
    "open_storage",
    "open_tools",
    "open_traces",
    "raise_limits",
    "read_summary",
    "reset_summary",
    "run",
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
