"""The messages of the user's side while the figures are checked."""

from replan.pipelines import BaseAgent, InteractionUnit, Task, Thread, ThreadMessage


class FigureCheckUnit(InteractionUnit):
    """The round in which the figures of the draft are compared with the notes."""

    async def generate_user_message(
        self, bot_message: ThreadMessage, task: Task, thread: Thread, agent: BaseAgent
    ) -> str:
        """Ask for the findings."""
        return f"Correct the draft: {bot_message.text}"
