"""Choose the one table that a question fits."""

from collections import Counter
from collections.abc import Callable, Sequence

from replan.plan.model import Value
from replan_local.analyst.question import Question
from replan_local.analyst.tables import TableFile, tables_here
from replan_local.analyst.wording import NOISE, in_english
from replan_local.refusals import CannotAnswerError
from replan_local.words import words_of


class Fit(Value):
    """A table, and the question as this table's columns make it."""

    file: TableFile
    question: Question


def best_fit(
    files: Sequence[TableFile], ask: Callable[[TableFile], Question], words: Sequence[str]
) -> Fit:
    """Ask every table; the one that understands the question best is meant.

    Raises:
        CannotAnswerError: No table fits, or several fit equally well.
    """
    fits: list[Fit] = []
    refusals: list[CannotAnswerError] = []
    for file in files:
        try:
            fits.append(Fit(file=file, question=ask(file)))
        except CannotAnswerError as refusal:
            refusals.append(refusal)
    if not fits:
        raise _clearest(refusals, files)
    highest = max(_rank(fit, words) for fit in fits)
    best = [fit for fit in fits if _rank(fit, words) == highest]
    if len(best) > 1:
        names = ", ".join(fit.file.name for fit in best)
        message = f"The step could mean any of these tables: {names}. Name one."
        raise CannotAnswerError(message)
    return best[0]


def is_named(file: TableFile, words: Sequence[str], groups: Sequence[str] = ()) -> bool:
    """Whether a bare word means a table; the columns that a question groups by mean themselves."""
    # "By site" speaks of a column, and not of the table `sites.csv`.
    columns = Counter(word for name in groups for word in words_of(name))
    name = Counter(words_of(file.view))
    return bool(name) and name <= Counter(words) - columns


def ask_nothing(text: str) -> bool:
    """Whether a text asks for nothing in particular."""
    return all(word in NOISE for word in words_of(in_english(text)))


def _rank(fit: Fit, words: Sequence[str]) -> tuple[int, int]:
    """A table named by a bare word comes first, then the one that needs the fewest guesses."""
    return int(is_named(fit.file, words, fit.question.groups)), -len(fit.question.guessed)


def _clearest(
    refusals: Sequence[CannotAnswerError], files: Sequence[TableFile]
) -> CannotAnswerError:
    """The refusal that helps most: one that proposes a name."""
    with_hint = [refusal for refusal in refusals if "Did you mean" in str(refusal)]
    if with_hint or len(files) == 1:
        return (with_hint or list(refusals))[0]
    return CannotAnswerError(f"No table fits the step. {tables_here(files)} {refusals[0]}")
