"""What the user's side says while the figures are checked."""

from replan import BaseAgent, InteractionUnit, Task, Thread, ThreadMessage


class FigureCheckUnit(InteractionUnit):
    """The round in which the figures of the draft are compared with the notes."""

    async def generate_user_message(
        self, bot_message: ThreadMessage, task: Task, thread: Thread, agent: BaseAgent
    ) -> str:
        """Ask for what was found."""
        return f"Correct the draft: {bot_message.text}"
