# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.assembly.agents import build_agent as build_agent
from replan.ports.agent import Agent as Agent
from replan.ports.session_store import (
    HistoryPage as HistoryPage,
    SessionRecord as SessionRecord,
    SessionStore as SessionStore,
)
from replan.sessions.client.adapter import ClientAgentAdapter as ClientAgentAdapter
from replan.sessions.client.kept_turn import UndoneTurn as UndoneTurn
from replan.state.session.context import (
    AgentContext as AgentContext,
    AgentResult as AgentResult,
    Message as Message,
    ToolExecution as ToolExecution,
)
from replan.state.session.session import Session as Session
