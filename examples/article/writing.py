"""What all handlers of the article have in common: a prompt for a model, or a rule."""

from collections.abc import Callable
from pathlib import Path

from notes import NOTES

from replan.pipelines import BaseAgent, Response, Task, Thread, ThreadMessage, require_sub_thread

PROMPTS = Path(__file__).parent / "prompts"


async def written(
    phase: str, task: Task, thread: Thread, agent: BaseAgent, rule: Callable[[list[str]], str]
) -> Response:
    """Write the text of a phase: ask the model with its prompt, or follow a rule without one.

    Args:
        phase: The phase.
        task: The task of its handler.
        thread: The main thread.
        agent: Who has the model.
        rule: Makes the text of what the bot said before, here and one level above.
    """
    own = list(require_sub_thread(thread, task.sub_thread_path).messages)
    above = task.meta.get("parent_thread_path")
    before = list(require_sub_thread(thread, str(above)).messages) if above else []
    if not agent.ai_adapter.has_model:
        return Response(rule([each.text for each in before + own if each.sender == "bot"]))
    prompt = (PROMPTS / f"{phase}_system_prompt.md").read_text("utf-8")
    notes = ThreadMessage(id="notes", sender="user", text=NOTES, timestamp=task.host_utils.clock())
    asked = [notes, *(before + own or thread.messages[:1])]
    return Response(await agent.ai_adapter.chat(asked, system_message=prompt))
