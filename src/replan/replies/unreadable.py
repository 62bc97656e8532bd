"""What is said to a model whose reply cannot be read."""

from typing import Generic, TypeVar

from replan.plan.model import Value
from replan.replies.reply import Reply

Reading = TypeVar("Reading")

THINK_FORM = """\
---
complexity: simple
reasoning: One sentence.
---
The answer. For `moderate` or `complex`: the plan, each step a line such as `- [ ] 1. ... @name`."""
FEEDBACK_FORM = """\
---
verdict: complete
feedback: One sentence.
---
The final answer. For `verdict: continue`: the whole revised plan, or nothing to keep it."""

PLAN_FORM = """\
Write the whole reply again: the front matter, then the whole plan, each step a line such as
- [ ] 1. What is to be done @name (after 2)"""
ANSWER_FORM = """\
Write the whole reply again: the answer below `complexity: simple`, or the plan below
`complexity: complex`."""

_LONGEST_VALUE = 60


class Complaint(Value, Generic[Reading]):
    """Why a reply is asked for again."""

    problem: str  # what is wrong and what the right form is; the model is shown it
    # What applies if the second reply is no better; none: the node's own fallback.
    reading: Reading | None = None
    # What that is, for people, where it is less than what the reply seems to mean.
    done: str = "what the reply seems to mean"


def problem_of(reply: Reply, key: str, labels: str, form: str) -> str:
    """Say what is wrong with a reply whose label cannot be read, and show the right form."""
    value = reply.fields.get(key, "").partition("\n")[0][:_LONGEST_VALUE]
    if not reply.has_front_matter and not reply.body:
        what = f"Your reply is empty, so it has no `{key}`."
    elif not reply.has_front_matter:
        what = f"Your reply does not begin with its front matter, so it has no `{key}`."
    elif value:
        what = f"`{key}: {value}` is not one of {labels}."
    else:
        what = f"`{key}` is missing in your reply; it is one of {labels}."
    return f"{what} Write the whole reply again in this form, with nothing before it:\n{form}"
