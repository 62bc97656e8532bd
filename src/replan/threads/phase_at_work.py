"""The phase of a pipeline that is at work here, and who receives the texts of phases."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from replan.errors import ThreadError
from replan.models.streams import OnText
from replan.ports.run_context import here


@dataclass(kw_only=True)
class Audience:
    """Receives the texts of phases, each once: a text of a model in pieces, any other one whole."""

    # Shows a text that no model said; None if nothing listens.
    show: Callable[[str], Awaitable[None]] | None = None
    # Takes the pieces of a model's reply; None if nothing listens, and where the callbacks of its
    # configuration do.
    on_text: OnText | None = None
    texts: int = 0  # how many texts were shown so far

    async def show_text(self, text: str, since: int) -> None:
        """Show the text of a phase, unless a text was shown since the phase began its work.

        Args:
            text: The text.
            since: `texts` at the beginning of the phase.
        """
        # The texts of models were shown in pieces, and those of sub-threads as they came.
        if self.show is not None and self.texts == since:
            self.texts += 1
            await self.show(text)

    async def show_pieces(self, pieces: AsyncIterator[str], since: int) -> None:
        """Take the pieces of a phase's text, and show them as `show_text` does."""
        show = self.show if self.texts == since else None
        async for piece in pieces:
            if show is not None:
                self.texts = since + 1
                await show(piece)


@dataclass(frozen=True, kw_only=True)
class PhaseAtWork:
    """A phase that is at work, and who receives its texts."""

    audience: Audience = field(default_factory=Audience)
    phase: str = ""
    path: str = ""  # the path of the sub-thread that is at work; empty in the main thread


def phase_at_work() -> PhaseAtWork:
    """Return the phase that is at work here."""
    found = here().phase
    if not isinstance(found, PhaseAtWork):
        fix = "Use it in a handler or a unit that a pipeline runs."
        raise ThreadError("", "no pipeline is at work here, so there are no host utilities", fix)
    return found
