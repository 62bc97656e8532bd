# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.assembly.graphs import build_graph as build_graph
from replan.assembly.runtime import (
    open_runtime as open_runtime,
    open_tools as open_tools,
    run as run,
    run_sync as run_sync,
    stream as stream,
)
from replan.base.errors import (
    ConfigurationError as ConfigurationError,
    InputError as InputError,
    LimitReachedError as LimitReachedError,
    ModelCallError as ModelCallError,
    PlanConflictError as PlanConflictError,
    PlanDocumentError as PlanDocumentError,
    PlanError as PlanError,
    QuestionError as QuestionError,
    ReplanError as ReplanError,
    SettingsError as SettingsError,
    StorageError as StorageError,
    TeamError as TeamError,
    TeamFileError as TeamFileError,
    UsageError as UsageError,
)
from replan.log.events.callbacks import MultiAgentCallback as MultiAgentCallback
from replan.log.report import RunReport as RunReport
from replan.plan.markdown.document import PlanDocument as PlanDocument
from replan.plan.model import PlanStep as PlanStep, StepStatus as StepStatus, TaskPlan as TaskPlan
from replan.ports.ask_user import ask_user as ask_user
from replan.ports.storage import Storage as Storage
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
from replan.runs.synchronous import SyncRuntime as SyncRuntime
from replan.runs.travel.portable import PortableRun as PortableRun
from replan.server.serving import open_server as open_server
from replan.state.enhanced import EnhancedState as EnhancedState
from replan.state.knowledge import RAGOptions as RAGOptions
from replan.state.limits import (
    Budget as Budget,
    Limits as Limits,
    Price as Price,
    RunSettings as RunSettings,
)
from replan.state.options import MemoryOptions as MemoryOptions
from replan.state.person.waiting import waiting_for as waiting_for
from replan.state.questions import Decision as Decision, Question as Question
from replan.state.results import (
    Artifact as Artifact,
    ExecutionContext as ExecutionContext,
    ExecutionStatus as ExecutionStatus,
    SpecialistResult as SpecialistResult,
)
from replan.state.usage import Usage as Usage
from replan.storage.opening import open_storage as open_storage
from replan.team.chats import Fallback as Fallback
from replan.team.host import Host as Host
from replan.team.specialist import Specialist as Specialist
from replan.team.team import Team as Team
from replan.team.team_file import read_team_file as read_team_file
from replan.team.tool_server import ToolServer as ToolServer
from replan.traces.option import Traces as Traces
from replan.traces.otlp import open_traces as open_traces

__version__: str
MultiAgentConfig = Team
