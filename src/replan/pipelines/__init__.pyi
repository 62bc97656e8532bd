# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.assembly.pipelines import pipeline_agent as pipeline_agent, run_pipeline as run_pipeline
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
from replan.ports.thread_repository import ThreadRepository as ThreadRepository
from replan.state.pipeline.threads import (
    Thread as Thread,
    ThreadMessage as ThreadMessage,
    get_sub_thread_by_path as get_sub_thread_by_path,
    require_sub_thread as require_sub_thread,
)
