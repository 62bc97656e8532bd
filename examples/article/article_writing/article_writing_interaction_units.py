"""The messages of the user's side while the article is written."""

from replan.pipelines import BaseAgent, InteractionUnit, Task, Thread, ThreadMessage


class DraftWritingUnit(InteractionUnit):
    """The round in which the draft is written."""

    async def generate_user_message(
        self, bot_message: ThreadMessage, task: Task, thread: Thread, agent: BaseAgent
    ) -> str:
        """Ask for a critique."""
        return f"What is wrong with these {len(bot_message.text.split())} words?"
