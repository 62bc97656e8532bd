"""The two phases of the fact check: the level above has the outline, then the draft."""

import re

from notes import FIGURE, sentences, source_of
from writing import written

from replan.pipelines import BaseAgent, Response, StateHandler, Task, Thread


class FigureCheckHandler(StateHandler):
    """Compares each figure of the draft with the notes."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Name each figure that the notes contradict, with the right one."""

        def check(said: list[str]) -> str:
            claims = [each for each in sentences(said[1]) if FIGURE.search(each)]
            pairs = [(FIGURE.findall(each)[0], FIGURE.findall(source_of(each))) for each in claims]
            wrong = [f"{own} is {right[0]}" for own, right in pairs if right and own not in right]
            return "wrong: " + "; ".join(wrong) if wrong else "all figures are right"

        return await written(self.phase, task, thread, agent, check)


class DraftCorrectionHandler(StateHandler):
    """Puts the right figures into the draft."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Replace the wrong figures."""

        def corrected(said: list[str]) -> str:
            draft = said[1]
            for wrong, right in re.findall(r"(\d+) is (\d+)", said[-1]):
                draft = draft.replace(wrong, right)
            return draft

        return await written(self.phase, task, thread, agent, corrected)
