"""What all handlers of the article have in common: a rule, and a prompt."""

import sys
from pathlib import Path

from notes import NOTES

from replan import BaseAgent, Response, StateHandler, Task, Thread, require_sub_thread


class WritingHandler(StateHandler):
    """Asks the model with the prompt of its phase; works by rules if there is none."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Write the text of the phase."""
        own = list(require_sub_thread(thread, task.sub_thread_path).messages)
        above = task.meta.get("parent_thread_path")
        before = list(require_sub_thread(thread, str(above)).messages) if above else []
        if not agent.ai_adapter.has_model:
            return Response(self.by_rules([m.text for m in before + own if m.sender == "bot"]))
        asked = before + own or thread.messages[:1]
        wish = f"{self.prompt}\n\n{NOTES}"
        return Response(await agent.ai_adapter.chat(asked, system_message=wish))

    @property
    def prompt(self) -> str:
        """The prompt of the phase, which stands beside the handlers of its level."""
        folder = Path(str(sys.modules[type(self).__module__].__file__)).parent / "prompts"
        return (folder / f"{self.phase}_system_prompt.md").read_text("utf-8")

    def by_rules(self, said: list[str]) -> str:
        """Write the text without a model, from what was said before, that of the level above too.

        Args:
            said: The texts of the bot, the oldest first.
        """
        raise NotImplementedError
