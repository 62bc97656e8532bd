"""The names that the outside may rely on, and what it costs to import them."""

import inspect
import json
import subprocess
import sys

import pytest

import replan
import replan.assembly
from replan.team.file_team import DEFAULT_TEAM

NAMES = [
    "AIAdapter",
    "ActionSpec",
    "ActionType",
    "Agent",
    "AgentContext",
    "AgentResult",
    "Artifact",
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
    "LeftAlone",
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
    "PlanConflictError",
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
    "Recovery",
    "ReplanError",
    "Response",
    "RetrievalError",
    "Retriever",
    "Run",
    "RunReport",
    "RunResult",
    "RunSettings",
    "RunStatus",
    "Runtime",
    "SearchRequest",
    "SearchResponse",
    "Session",
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
    "UndoneTurn",
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

HEAVY = {
    *("psycopg", "sqlite3", "replan.storage.opening", "replan.runs.travel"),
    *("aiohttp", "duckdb", "filelock", "mcp", "replan.jobs", "replan.sessions"),
    *("langchain", "langchain_openai", "openai"),
    *("markdown_it", "yaml"),
}
"""What building and running a team without storage, tools and models by name does without."""


def test_the_public_names_are_these():
    """A name that is here is promised: adding one is a feature, taking one away a break."""
    assert replan.__all__ == NAMES == sorted(NAMES)


def test_a_public_name_can_be_imported_and_says_what_it_is():
    assert set(NAMES) - set(dir(replan)) == set()
    for name in NAMES:
        value = getattr(replan, name)
        assert value.__name__ == name
        assert value.__doc__, name
        assert value.__module__.startswith("replan."), name


def test_what_can_be_called_on_a_public_class_says_what_it_does():
    assert [
        f"{name}.{each}"
        for name in NAMES
        for each, member in vars(getattr(replan, name)).items()
        if not each.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and not member.__doc__
    ] == []


def test_the_version_is_that_of_the_installed_package(tmp_path, monkeypatch):
    installed = tmp_path / "replan-9.8.7.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: replan\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert replan.__version__ == "9.8.7"


@pytest.mark.parametrize("room", [replan, replan.assembly])
def test_another_name_is_an_attribute_error(room):
    with pytest.raises(AttributeError, match="no attribute 'build_grpah'"):
        _ = room.build_grpah


def test_what_makes_a_graph_is_found_where_the_guides_name_it():
    assert replan.assembly.build_graph is replan.build_graph
    assert replan.assembly.team_graph(DEFAULT_TEAM, environment={}).name == "replan"


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import replan", {"langchain_core", "langgraph", "openai", "pydantic", "yaml"}),
        ("from replan import ReplanError", {"langchain_core", "langgraph", "openai", "pydantic"}),
        ("from replan.plan import TaskPlan", {"langchain_core", "langgraph", "openai"}),
        ("from replan import PlanDocument", {"langchain_core", "langgraph", "openai"}),
        ("from replan import Limits", {"langchain_core", "langgraph", "openai"}),
        ("import replan.testing.fixtures", {"langchain_core", "langgraph", "openai", "aiohttp"}),
        ("from replan import Traces, open_traces", {"langchain_core", "opentelemetry"}),
        ("from replan import build_graph", HEAVY),
        ("from replan import Team, run_sync", HEAVY),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code, unwanted):
    script = f"{code}\nimport json, sys; print(json.dumps(list(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert unwanted & set(json.loads(ended.stdout)) == set()
