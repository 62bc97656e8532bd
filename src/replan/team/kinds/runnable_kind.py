"""A specialist that is a LangChain runnable, a compiled graph, or a function of messages."""

from typing import TYPE_CHECKING, Any, ClassVar

from replan.team.chats import Chats
from replan.team.fields.code import Work
from replan.team.kinds.member import Answering

if TYPE_CHECKING:
    from replan.ports.specialist_port import SpecialistPort


class Runnable(Answering):
    """A specialist that is a runnable, a graph, or a function of messages.

    Attributes:
        invokable: A LangChain runnable, a compiled graph or a function of the messages.
        streamable: The same, as a function that yields its answer in pieces (an iterator, sync or
            async) or a runnable that streams; preferred, and its pieces are shown as they come.
    """

    marks: ClassVar[tuple[str, ...]] = ("invokable", "streamable")

    invokable: Work | None = None
    streamable: Work | None = None

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build the specialist that passes the messages on."""
        from replan.base.langgraph_inside.graphs import is_graph
        from replan.base.secrets.sources import learn_model
        from replan.specialists.effects import effects_of_work
        from replan.specialists.prompted import PromptedSpecialist, RunnableAnswer

        work: Any = self.invokable if self.streamable is None else self.streamable
        learn_model(work)
        card = self.card_with(effects_of_work(work))
        return PromptedSpecialist(
            card=card,
            answer=RunnableAnswer(self.invokable, self.streamable),
            graph=work if is_graph(work) else None,
            can_answer_again=card.effects == "pure",
            **self.answering,
        )
