"""Read a specialist's text: an optional front matter, then the result."""

import re

from pydantic import Field

from replan.plan.model import Value
from replan.replies.keys import SPECIALIST, squeezed
from replan.replies.reply import Reply, read_reply
from replan.replies.unreadable import odd_in
from replan.replies.wrapping import Fence, behind_thoughts, fence_around, unwrapped
from replan.state.results import ExecutionStatus

_CONFIDENCE = {ExecutionStatus.SUCCESS: 1, ExecutionStatus.PARTIAL: 0.5, ExecutionStatus.FAILED: 0}
_MISPLACED = re.compile(
    r"(?:[^\n]*\n){1,3}[ \t]*(?:-{3,}|`{3,}\w*)[ \t]*\n"
    r"([ \t]*status:[ \t]*(?:failed|partial)[ \t]*)\n",
    re.IGNORECASE,
)


class SpecialistReading(Value):
    # How the work ended; success where nothing is said.
    status: ExecutionStatus = ExecutionStatus.SUCCESS
    confidence: float = Field(default=1.0, ge=0, le=1)
    replan_needed: bool = False  # asks the host to revise the plan
    retry: bool = True  # whether another attempt can help
    body: str = ""  # the result
    problem: str = ""  # why it cannot be said how the work ended, or empty
    odd: str = ""  # what of a front matter is not read, or empty


def read_specialist(text: str) -> SpecialistReading:
    """Read a specialist's text, which is all body unless it begins with a front matter of ours.

    A report may begin with a line such as `status: on track` or with its own front matter: values
    that do not fit make it text. A text without any result is not a success.
    """
    reply = read_reply(text, SPECIALIST)
    fields = reply.fields
    status = ExecutionStatus(fields.get("status", ExecutionStatus.SUCCESS))
    is_success = status is ExecutionStatus.SUCCESS
    # A JSON object is a report only with a result in it, and nothing else: it may be the data.
    source = unwrapped(text)
    inner = (fence_around(source) or Fence("", source)).inner
    is_data = inner.lstrip().startswith("{") and bool(reply.odd or not reply.body)
    is_misfit = any(squeezed(name) in SPECIALIST for name in reply.odd)
    if not fields or is_data or (is_success and (reply.problem or is_misfit)):
        body = behind_thoughts(source)
        status = ExecutionStatus.SUCCESS if body else ExecutionStatus.FAILED
        return SpecialistReading(status=status, body=body, problem=_misplaced_in(body))
    return SpecialistReading(
        status=status,
        confidence=float(fields.get("confidence", _CONFIDENCE[status])),
        replan_needed=fields.get("replan_needed") == "yes",
        retry=fields.get("retry") != "no",
        body=_body_of(reply),
        problem=reply.problem,
        odd=odd_in(reply),
    )


def _misplaced_in(body: str) -> str:
    """Why a text may not be a success: it says below its first lines that the work failed."""
    found = _MISPLACED.match(body)
    return f"`{found[1].strip()}` is not at the beginning of the reply." if found else ""


def _body_of(reply: Reply) -> str:
    """The result, after what the front matter says of it; else all that there is."""
    parts = [part for part in (reply.fields.get("reason", ""), reply.body) if part]
    return "\n\n".join(parts) or "\n".join(f"{name}: {value}" for name, value in reply.odd.items())
