"""Why a reply is incomplete or missing, as the state, the events and the prompts have it."""

from collections.abc import Mapping

REPLY_LENGTH = "reply_length"
"""A reply that reached its length."""

CONTENT_FILTER = "content_filter"
"""A reply that its provider withheld, or that its model refused."""

UNFINISHED = "unfinished_reply"
"""A reply that ends within its JSON, though its server says that it is whole."""

NO_ANSWER = "no_answer"
"""The host's model gave no answer: it failed, or its reply was empty."""

CUTS: Mapping[str, str] = {
    REPLY_LENGTH: "the reply was cut off at its length limit",
    UNFINISHED: "the reply ends in the middle of its JSON",
    CONTENT_FILTER: "a content filter cut the reply off",
    NO_ANSWER: "the host's model gave no answer",
}
"""What each of them is called for people; the names are in `limit_reached`, too."""


def answer_warning(cut: str, why: str = "") -> str:
    """Say what is wrong with the answer of a run, and why."""
    if cut != NO_ANSWER:
        return f"The answer is incomplete: {CUTS[cut]}."
    end = "" if not why or why.endswith((".", "!", "?")) else "."
    reason = f": {why}{end}" if why else "."
    return f"The host's model gave no answer, so the results are shown{reason}"


def with_cut(text: str, cut: str) -> str:
    # In front: who shows an excerpt shows the beginning.
    return f"[Incomplete: {cut_in_words(cut)}.]\n\n{text}" if cut else text


def cut_in_words(cut: str) -> str:
    """Explain why something is incomplete: its own cut, or else the limit that was reached."""
    return CUTS.get(cut, f"the limit {cut} was reached")
