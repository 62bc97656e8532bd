"""The live things that the nodes work with, bound when the graph is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from langgraph.store.base import BaseStore

from replan.base.errors import ConfigurationError
from replan.log.events.emitter import Hooks
from replan.log.run_log import RunLog
from replan.models.chat import Chat
from replan.models.spending.account import Accounts
from replan.ports.elsewhere import StepQueue
from replan.ports.retriever import Retriever
from replan.ports.run_book import TeamIdentity
from replan.ports.run_context import HERE, Folders
from replan.ports.specialist_port import SpecialistPort
from replan.ports.thread_repository import ThreadRepository
from replan.ports.tool_provider import ToolProvider
from replan.prompts.host import HostPrompts
from replan.prompts.replies.shape import Shape
from replan.state.conversation.facts import Facts, facts_of
from replan.state.knowledge import RAGOptions
from replan.state.limits import Budget, Price, RunSettings
from replan.state.options import MemoryOptions
from replan.state.team import SpecialistCard

_USER_OF_A_CLIENT = (
    "Let the server authenticate its clients, set the team's user, or let clients name themselves "
    "with client_overrides: [user]."
)
HOST = ""
"""The host's name among the receivers of knowledge."""


# `direct` answers simple requests: it is `answering`, with the host's tools if it has some.
@dataclass(frozen=True, kw_only=True)
class HostModels:
    """Who thinks, plans, judges and answers; often one and the same."""

    thinking: Chat
    planning: Chat
    feedback: Chat
    answering: Chat
    direct: Chat


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything from outside that a node may use; never in the state nor in a checkpoint."""

    models: HostModels
    specialists: Mapping[str, SpecialistPort]
    prompts: HostPrompts  # the host's prompts, with the team's cards
    identity: TeamIdentity  # what runs are known to be done by
    log: RunLog  # where finished work is on record first
    settings: RunSettings  # what a run may do, where its request does not say
    # What specialists see of the conversation, by name, where they do not see what the host sees.
    memory: Mapping[str, MemoryOptions] = field(default_factory=dict[str, MemoryOptions])
    model_of: Callable[[str], Chat]  # the model of a name
    output: Shape | None = None  # the type that the answer has to be of, or none
    # The specialists whose steps may begin while their plan is still being written.
    early_members: frozenset[str] = frozenset()
    is_direct: bool = False  # whether there is no host: the one specialist does the one step
    # Whether requests come from outside the process, and may loosen nothing.
    is_served: bool = False
    # The settings and limits that they may loosen all the same.
    client_overrides: frozenset[str] = frozenset()
    # Where tools come from that are not the team's own, by the names of the servers.
    tool_servers: Mapping[str, ToolProvider] = field(default_factory=dict[str, ToolProvider])
    hooks: Hooks = field(default_factory=Hooks)
    workspace: Path | None = None  # the folder that specialists may use, or none
    folders: Folders = HERE  # where the work of a step reads and writes
    clock: Callable[[], datetime]  # the time, with a zone
    new_id: Callable[[], str]  # a new unique id
    retry_wait: float = 0.5  # seconds before the first retry; they double from attempt to attempt
    # What models cost, by name.
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    # For each configured model without a price, the field that it is in.
    unpriced: Mapping[str, str] = field(default_factory=dict[str, str])
    knowledge: Retriever | None = None  # where knowledge is found, or none
    # Which knowledge the host and each specialist are given, by their names.
    rag: Mapping[str, RAGOptions] = field(default_factory=dict[str, RAGOptions])
    remembers: bool = False  # whether somebody of the team remembers facts
    store: BaseStore | None = None  # the store that the graph was built with
    # What a specialist may spend in one run, by its name.
    budgets: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    # What the runs of this process may still spend.
    accounts: Accounts = field(default_factory=Accounts)
    # The queues whose workers do the steps of a specialist, by its name; and what gives them there.
    queues: Mapping[str, str] = field(default_factory=dict[str, str])
    elsewhere: StepQueue | None = None
    threads: ThreadRepository  # where the threads of pipelines are kept

    def facts(self, settings: RunSettings, of_graph: BaseStore | None) -> Facts | None:
        """The facts of the user of a run; None if no member of the team remembers.

        Args:
            settings: Those of the run.
            of_graph: The store that LangGraph found, of a server or of a graph around this one.

        Raises:
            ConfigurationError: The run names no user, or there is no store.
        """
        if not self.remembers:
            return None
        if not settings.user:
            problem = "the team remembers facts of its users, and this run names none"
            fix = _USER_OF_A_CLIENT if self.is_served else "Set RunSettings(user=...)."
            raise ConfigurationError("user", settings.user, problem, fix)
        return facts_of(self.store or of_graph, settings.user, settings.tenant)

    @property
    def team(self) -> tuple[SpecialistCard, ...]:
        """The cards of all specialists, in the order of the configuration."""
        return self.prompts.team

    @property
    def shapes(self) -> dict[str, Shape]:
        """The types of results by specialist, and that of the answer under ""."""
        found = {
            name: getattr(specialist, "shape", None)
            for name, specialist in self.specialists.items()
        }
        return {name: shape for name, shape in {**found, "": self.output}.items() if shape}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all specialists, in the order of the configuration."""
        return tuple(card.name for card in self.team)
