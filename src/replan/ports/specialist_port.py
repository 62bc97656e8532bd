"""The one contract that every kind of specialist keeps."""

from typing import Protocol

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_async_callback_manager_for_config

from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

TEXT_SHOWN = "replan.specialist_text"
"""The name of LangChain's custom event for a piece of text that no model said."""


async def show_text(text: str, config: RunnableConfig) -> None:
    """Show a piece of a specialist's text while it works.

    It becomes a `specialist_token` event, unless a model has spoken in this attempt: its words
    are shown anyway, and would be shown twice.
    """
    # Outside of a run there is nobody to show it to.
    if get_async_callback_manager_for_config(config).parent_run_id is not None:
        await adispatch_custom_event(TEXT_SHOWN, text, config=config)


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
        """Do the step of the context and give its result."""
        ...
