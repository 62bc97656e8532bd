"""Requests an unreadable reply again, and records what is done if that does not help."""

from collections.abc import Callable
from typing import TypeVar, cast

from langchain_core.messages import BaseMessage

from replan.errors import LimitReachedError, ModelCallError
from replan.events.types import ReplyUnreadable
from replan.host.answer_stream import AnswerStream
from replan.host.host_call import HostCall
from replan.models.chat import Chat
from replan.replies.readings import Complaint
from replan.state.results import UnreadableReply

R = TypeVar("R")


async def ask_readable(
    call: HostCall,
    chat: Chat,
    messages: list[BaseMessage],
    read: Callable[[str], R | Complaint[R]],
    answer: AnswerStream | None,
    *,
    fallback: str,
) -> tuple[R | None, list[UnreadableReply]]:
    """Return the reading of a reply, or of a second one; None if `fallback` is needed."""
    text = await call.ask(chat, messages, answer)
    reading = read(text)
    if not isinstance(reading, Complaint):
        return reading, []
    complaint = cast("Complaint[R]", reading)
    try:
        reading = read(await call.ask_again(chat, messages, text, complaint.problem, answer))
        if not isinstance(reading, Complaint):
            return reading, []
        complaint = cast("Complaint[R]", reading)
    except (ModelCallError, LimitReachedError):
        # The first reply is worse than a second one, and better than none.
        if complaint.reading is None:
            raise
    done = fallback if complaint.reading is None else complaint.done
    record = UnreadableReply(node=call.node, complaint=complaint.wrong, fallback=done)
    await call.emitter.emit(ReplyUnreadable, **dict(record))
    return complaint.reading, [record]
