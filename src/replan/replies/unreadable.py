"""The messages to a model whose reply cannot be read."""

from typing import Generic, TypeVar

from replan.plan.model import Value
from replan.replies.keys import Key
from replan.replies.reply import Reply

Reading = TypeVar("Reading")

THINK_FORM = """\
Write the whole reply again in this form, with nothing before it:
---
complexity: simple
reasoning: One sentence.
---
The answer. For `moderate` or `complex`: the plan, each step a line such as `- [ ] 1. ... @name`."""
FEEDBACK_FORM = """\
Write the whole reply again in this form, with nothing before it:
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

    wrong: str  # what is wrong with it, for people and for the model
    form: str  # how the model is to write it instead
    # What applies if the second reply is not better; None: the node's own fallback.
    reading: Reading | None = None
    done: str = ""  # what that is, for people

    @property
    def problem(self) -> str:
        """What the model is shown."""
        return f"{self.wrong} {self.form}"


def wrong_in(reply: Reply, key: Key) -> str:
    """Describe what was read of a reply, and why that does not say what it means."""
    if reply.problem:
        return reply.problem
    if (value := reply.odd.get(key.name)) is not None:
        value = value.partition("\n")[0][:_LONGEST_VALUE]
        return f"`{key.name}: {value}` is not one of {key.labels}."
    if found := [*reply.fields, *reply.odd]:
        names = ", ".join(f"`{name}`" for name in found)
        return f"The front matter has {names}, but no `{key.name}`, which is one of {key.labels}."
    why = "does not begin with its front matter" if reply.body else "is empty"
    return f"The reply {why}, so it has no `{key.name}`."


def odd_in(reply: Reply) -> str:
    """Describe what of a front matter is not as it should be; empty if there is nothing."""
    lines = ", ".join(f"`{name}: {value[:_LONGEST_VALUE]}`" for name, value in reply.odd.items())
    unread = f"The front matter of a reply has lines that are not read: {lines}." if lines else ""
    if reply.has_end:
        return unread
    return f"{unread} The front matter of a reply has no second line `---`.".strip()
