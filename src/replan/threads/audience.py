"""Who receives the texts of a pipeline while it works."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from replan.models.chat import OnText


@dataclass(kw_only=True)
class Audience:
    """Receives the texts of phases, each once: a text of a model in pieces, any other one whole.

    Attributes:
        show: Shows a text that no model said; None if nothing listens.
        on_text: Takes the pieces of a model's reply; None if nothing listens, and where the
            callbacks of its configuration do.
        texts: How many texts were shown so far.
    """

    show: Callable[[str], Awaitable[None]] | None = None
    on_text: OnText | None = None
    texts: int = 0

    async def hear(self, text: str, since: int) -> None:
        """Show the text of a phase, unless a text was shown since the phase began its work.

        Args:
            text: The text.
            since: `texts` at the beginning of the phase.
        """
        # The texts of models were shown in pieces, and those of sub-threads as they came.
        if self.show is not None and self.texts == since:
            self.texts += 1
            await self.show(text)

    async def follow(self, pieces: AsyncIterator[str], since: int) -> None:
        """Take the pieces of a phase's text, and show them as `hear` does."""
        show = self.show if self.texts == since else None
        async for piece in pieces:
            if show is not None:
                self.texts = since + 1
                await show(piece)
