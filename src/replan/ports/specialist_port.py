"""The contract of every kind of specialist."""

from typing import Protocol

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_async_callback_manager_for_config

from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

TEXT_SHOWN = "replan.specialist_text"
"""The name of LangChain's custom event for a piece of text that is not from a model."""

TEXT_BESIDE = "replan.specialist_text_beside"
"""The name of the event for one that is shown in addition to what models say."""


async def show_text(text: str, config: RunnableConfig, *, beside_models: bool = False) -> None:
    """Show a piece of a specialist's text while it works.

    It becomes a `specialist_token` event, unless a model has spoken in this attempt: its words
    are shown anyway, and would be shown twice. One that is `beside_models` is always shown.
    """
    # Outside a run there is no stream.
    if get_async_callback_manager_for_config(config).parent_run_id is not None:
        kind = TEXT_BESIDE if beside_models else TEXT_SHOWN
        await adispatch_custom_event(kind, text, config=config)


class SpecialistPort(Protocol):
    """Somebody who can do a step.

    An implementation may raise: the node that calls it turns every exception into a failed result.
    It streams by passing `config` on to its models, whose tokens become events.
    """

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        ...

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Do the step of the context and return its result."""
        ...
