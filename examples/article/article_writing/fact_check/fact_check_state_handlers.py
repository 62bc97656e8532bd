"""The two phases of the fact check: what the level above said is the outline, then the draft."""

import re

from notes import FIGURE, sentences, source_of
from writing_state_handlers import WritingHandler


class FigureCheckHandler(WritingHandler):
    """Compares each figure of the draft with the notes."""

    def by_rules(self, said: list[str]) -> str:
        """Name each figure that the notes contradict, with the right one."""
        claims = [each for each in sentences(said[1]) if FIGURE.search(each)]
        pairs = [(FIGURE.findall(each)[0], FIGURE.findall(source_of(each))) for each in claims]
        wrong = [f"{said} is {right[0]}" for said, right in pairs if right and said not in right]
        return "wrong: " + "; ".join(wrong) if wrong else "all figures are right"


class DraftCorrectionHandler(WritingHandler):
    """Puts the right figures into the draft."""

    def by_rules(self, said: list[str]) -> str:
        """Replace what the check has found."""
        draft = said[1]
        for wrong, right in re.findall(r"(\d+) is (\d+)", said[-1]):
            draft = draft.replace(wrong, right)
        return draft
