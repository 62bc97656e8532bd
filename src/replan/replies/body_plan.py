"""Finding the plan that the body of a reply is, also in a fence or in JSON."""

from collections.abc import Callable

from replan.replies.json_steps import plan_in_json
from replan.replies.reply import HOST_KEYS, read_reply
from replan.replies.wrapping import NEUTRAL_LANGUAGES, trimmed, whole_fence

LooksLikePlan = Callable[[str], bool]
"""Whether a text has steps of a plan."""


def read_plan(text: str, looks_like_plan: LooksLikePlan) -> str:
    """Give the plan document in a reply that should be nothing else: without what stands around it.

    A reply without steps of a plan is given as it is, without front matter.
    """
    body = read_reply(text, HOST_KEYS).body
    return plan_of(body, looks_like_plan, expected=True) or body


def plan_of(body: str, looks_like_plan: LooksLikePlan, *, expected: bool) -> str | None:
    """Give the plan that a body is, also one in a fence or in JSON; none if it is no plan."""
    fence = whole_fence(body) if body.startswith(("```", "~~~")) else None
    if fence and fence.language in NEUTRAL_LANGUAGES and not trimmed(fence.rest):
        body = trimmed(fence.inner) or body
    written = plan_in_json(body, expected=expected)
    if written is not None and looks_like_plan(written):
        return written
    return body if looks_like_plan(body) else None
