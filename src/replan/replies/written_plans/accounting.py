"""Whether all that a text says about people, order and steps came into the plan read from it.

However a plan was written and read: a name of the team, a phrase that names steps, a number at the
beginning of a line. What of that is not in the plan was lost on the way, and must be asked about.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import islice

from replan.errors import Mistake
from replan.plan.model import PlanStep
from replan.replies.vocabulary.naming import Names, squeezed
from replan.replies.written_plans.openings import opening_of
from replan.replies.written_plans.order_phrases import ALL, PREVIOUS, keyword_places, read_order

_WORDS = re.compile(r"[\w.-]+")
_MOST_PLACES = 2_000
_PHRASE = re.compile(r"[^\n.!?。<>@]{1,60}")
_CUT = re.compile(r"(?:(?<!\s)\s++)?(?:[;)\]}）】|]|,\s*+(?=[^\W\d])|//).*", re.DOTALL)


def unaccounted(source: str, steps: Sequence[PlanStep], names: Names) -> Iterator[Mistake]:
    if any(not step.assigned_to for step in steps) and (lost := _names_in(source, steps, names)):
        yield _mistake("name_not_read", f"It is not clear which step '{lost}' does.")
    labels = {str(step.id) for step in steps}
    waits = [{str(other) for other in step.awaits} for step in steps]
    orders = list(_orders_in(source, labels))
    lost = [phrase for phrase, refs in orders if not any(refs <= each for each in waits)]
    # Where a model counts in its own way, as many steps wait as phrases say so.
    if lost and len(orders) > sum(map(bool, waits)):
        yield _mistake("order_not_read", f"It is not clear which step waits in '{lost[0]}'.")
    counted = _numbered_lines(source)
    if counted > len(steps):
        yield _mistake("step_not_read", f"Only {len(steps)} of {counted} steps can be read.")


def _names_in(source: str, steps: Sequence[PlanStep], names: Names) -> str:
    """Return a name of the team that the text has and no step with it goes to; else nothing."""
    known = {squeezed(name): name for name in names.team}
    used = Counter(name for step in steps for name in step.specialists)
    assigned = " ".join(step.description for step in steps if step.assigned_to)
    found = Counter(squeezed(word) for word in _WORDS.findall(source))
    found.subtract(squeezed(word) for word in _WORDS.findall(assigned))
    return next((name for word, name in known.items() if found[word] > used[name]), "")


def _orders_in(source: str, labels: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Give each phrase of a text that says which steps come first, and these steps."""
    # A hostile text says the same thing hundreds of times.
    read = cache(partial(read_order, labels=labels))
    for phrase in _phrases_in(source):
        order = read(phrase)
        refs = set(order.refs) & labels if order and order.is_strong else set[str]()
        if refs and not {ALL, PREVIOUS} & set(order.refs if order else ()):
            yield phrase, refs


# A text is compared with each form of its plan.
@lru_cache(maxsize=4)
def _phrases_in(source: str) -> tuple[str, ...]:
    """Return what is behind each word that means an order."""
    found = (_PHRASE.match(source, at) for at in islice(keyword_places(source), _MOST_PLACES))
    return tuple(_CUT.sub("", each[0]).strip(" *_`:,") if each else "" for each in found)


def _numbered_lines(source: str) -> int:
    """Count the lines at the margin that are numbered from 1 on without a gap."""
    count = 0
    for line in source.split("\n"):
        opening = opening_of(line)
        count += not opening.indent and opening.label == str(count + 1)
    return count


def _mistake(code: str, reason: str) -> Mistake:
    fix = "Write each step on a line like this: - [ ] 3. What is to be done @name (after 1, 2)"
    return Mistake(line=1, column=1, code=code, reason=reason, fix=fix)
