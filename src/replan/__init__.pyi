# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.adapters.knowledge.folder import FolderRetriever as FolderRetriever
from replan.adapters.knowledge.langchain import (
    LangChainRetriever as LangChainRetriever,
    VectorStoreRetriever as VectorStoreRetriever,
)
from replan.adapters.knowledge.postgres_knowledge import PostgresRetriever as PostgresRetriever
from replan.assembly.agents import build_agent as build_agent
from replan.assembly.graphs import build_graph as build_graph
from replan.assembly.jobs import job_agent as job_agent, job_processor as job_processor
from replan.assembly.pipelines import pipeline_agent as pipeline_agent, run_pipeline as run_pipeline
from replan.errors import (
    ConfigurationError as ConfigurationError,
    ContextError as ContextError,
    InputError as InputError,
    JobError as JobError,
    JobFileError as JobFileError,
    JobSpecError as JobSpecError,
    LimitReachedError as LimitReachedError,
    ModelCallError as ModelCallError,
    PhaseError as PhaseError,
    PlanChangeError as PlanChangeError,
    PlanConflictError as PlanConflictError,
    PlanDocumentError as PlanDocumentError,
    PlanError as PlanError,
    QuestionError as QuestionError,
    ReplanError as ReplanError,
    RetrievalError as RetrievalError,
    SessionBusyError as SessionBusyError,
    SessionConflictError as SessionConflictError,
    SettingsError as SettingsError,
    StaleThreadError as StaleThreadError,
    StorageError as StorageError,
    SubThreadPathError as SubThreadPathError,
    TeamError as TeamError,
    TeamFileError as TeamFileError,
    ThreadBusyError as ThreadBusyError,
    ThreadError as ThreadError,
    ThreadLostError as ThreadLostError,
    ToolCallLostError as ToolCallLostError,
    ToolServerError as ToolServerError,
    UnknownStepError as UnknownStepError,
    UnpricedModelError as UnpricedModelError,
    UsageError as UsageError,
)
from replan.events.callbacks import MultiAgentCallback as MultiAgentCallback
from replan.facts.kept import Fact as Fact
from replan.jobs.job import Job as Job, JobPhase as JobPhase
from replan.jobs.processor import JobProcessor as JobProcessor, ProcessResult as ProcessResult
from replan.jobs.spec.action_spec import ActionSpec as ActionSpec, ParameterSpec as ParameterSpec
from replan.jobs.spec.job_file import read_job_file as read_job_file
from replan.jobs.spec.job_spec import Command as Command, JobSpec as JobSpec
from replan.jobs.spec.slot import Slot as Slot
from replan.log.report import RunReport as RunReport
from replan.pipelines.host_utils import AIAdapter as AIAdapter
from replan.pipelines.phases.agent_and_handler import (
    BaseAgent as BaseAgent,
    Operation as Operation,
    StateHandler as StateHandler,
)
from replan.pipelines.response import (
    MessageUpdate as MessageUpdate,
    Response as Response,
    SubThreadRequest as SubThreadRequest,
)
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit as InteractionUnit
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent as SubThreadAgent
from replan.pipelines.sub_threads.sub_thread_handlers import (
    NestedSubThreadHandler as NestedSubThreadHandler,
    SubThreadExecutionHandler as SubThreadExecutionHandler,
    SubThreadPreparationHandler as SubThreadPreparationHandler,
)
from replan.pipelines.task import Task as Task
from replan.plan.markdown.document import PlanDocument as PlanDocument
from replan.plan.model import (
    PlanStep as PlanStep,
    PlanUpdate as PlanUpdate,
    PlanUpdateType as PlanUpdateType,
    StepStatus as StepStatus,
    TaskPlan as TaskPlan,
)
from replan.ports.agent import Agent as Agent
from replan.ports.ask_user import ask_user as ask_user
from replan.ports.retriever import (
    Retriever as Retriever,
    SearchRequest as SearchRequest,
    SearchResponse as SearchResponse,
)
from replan.ports.session_store import (
    HistoryPage as HistoryPage,
    SessionRecord as SessionRecord,
    SessionStore as SessionStore,
)
from replan.ports.storage import Storage as Storage
from replan.ports.thread_repository import ThreadRepository as ThreadRepository
from replan.ports.tool_provider import (
    ToolDefinition as ToolDefinition,
    ToolProvider as ToolProvider,
)
from replan.runs.continued.recovery import LeftAlone as LeftAlone, Recovery as Recovery
from replan.runs.continued.resuming import raise_limits as raise_limits
from replan.runs.result import RunResult as RunResult
from replan.runs.run import Run as Run
from replan.runs.service import Runtime as Runtime
from replan.runs.statuses import RunStatus as RunStatus
from replan.runs.summaries import (
    read_summary as read_summary,
    reset_summary as reset_summary,
    summarise as summarise,
)
from replan.runs.synchronous import SyncRuntime as SyncRuntime
from replan.runs.travel.portable import PortableRun as PortableRun
from replan.runtime import (
    open_runtime as open_runtime,
    open_tools as open_tools,
    run as run,
    run_sync as run_sync,
    stream as stream,
)
from replan.server.serving import open_server as open_server
from replan.sessions.client.adapter import ClientAgentAdapter as ClientAgentAdapter
from replan.sessions.client.kept_turn import UndoneTurn as UndoneTurn
from replan.state.enhanced import EnhancedState as EnhancedState
from replan.state.knowledge import Chunk as Chunk, RAGOptions as RAGOptions, Source as Source
from replan.state.limits import (
    Budget as Budget,
    Limits as Limits,
    Price as Price,
    RunSettings as RunSettings,
)
from replan.state.memory import MemoryOptions as MemoryOptions, Summary as Summary
from replan.state.person.waiting import waiting_for as waiting_for
from replan.state.pipeline.thread_paths import (
    get_sub_thread_by_path as get_sub_thread_by_path,
    require_sub_thread as require_sub_thread,
)
from replan.state.pipeline.threads import Thread as Thread, ThreadMessage as ThreadMessage
from replan.state.questions import Decision as Decision, Question as Question
from replan.state.results import (
    ActionType as ActionType,
    Artifact as Artifact,
    CollectedResults as CollectedResults,
    ExecutionContext as ExecutionContext,
    ExecutionRecord as ExecutionRecord,
    ExecutionStatus as ExecutionStatus,
    FeedbackResult as FeedbackResult,
    SpecialistResult as SpecialistResult,
    TaskComplexity as TaskComplexity,
    ThinkingResult as ThinkingResult,
)
from replan.state.session.context import (
    AgentContext as AgentContext,
    AgentResult as AgentResult,
    Message as Message,
    ToolExecution as ToolExecution,
)
from replan.state.session.session import Session as Session
from replan.state.usage import Usage as Usage
from replan.storage.opening import open_storage as open_storage
from replan.team.fallback import Fallback as Fallback
from replan.team.host import Host as Host
from replan.team.specialist import Specialist as Specialist
from replan.team.team import Team as Team
from replan.team.tool_server import ToolServer as ToolServer
from replan.traces.option import Traces as Traces
from replan.traces.otlp import open_traces as open_traces

__version__: str
MultiAgentConfig = Team
