"""Who gets which reply: by node and step, each reply exactly once."""

import contextlib
import inspect
import re
import threading
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import get_args

from langchain_core.messages import AIMessage, BaseMessage

from replan.prompts.sections import Call, Caller
from replan.testing.faults import Fault
from replan.testing.replies import Always, Entry, Reply, as_reply

ANY = "*"
_NARROW_KEY = re.compile(r"step [1-9]\d*(/\S.*)?|unit \S+")
_EXCERPT = 200
_SINGLE = str | AIMessage | Reply | Exception | Fault | Always

Replies = Mapping[str, Entry | Always | Sequence[Entry | Always]] | Sequence[Entry | Always]
"""A script: replies by key, or a list of replies in the order of arrival."""


class UnexpectedModelCall(AssertionError):  # noqa: N818 - it names what happened
    """A model was called and the script has no reply for it.

    Attributes:
        call: Who called, or none if the prompt does not say.
        left: The keys that still have replies, and how many.
    """

    def __init__(self, call: Call | None, left: Mapping[str, int], prompt: str = "") -> None:
        self.call = call
        self.left = dict(left)
        tried = ", ".join(repr(key) for key in keys_of(call))
        excerpt = f" The prompt ended with: {prompt[-_EXCERPT:]!r}." if prompt else ""
        super().__init__(
            f"No reply is left for {_who(call)}. Looked under: {tried}. "
            f"Left over: {_listed(left)}.{excerpt}"
        )


class UnconsumedReplies(AssertionError):  # noqa: N818 - it names what happened
    """The test is over and the script still has replies.

    Attributes:
        left: The keys that still have replies, and how many.
    """

    def __init__(self, left: Mapping[str, int]) -> None:
        self.left = dict(left)
        super().__init__(f"Replies were never asked for: {_listed(left)}.")


class Script:
    """Replies by key, taken in order within a key, so that concurrent calls cannot swap them.

    Keys, from the narrowest to the widest: `"step 3/analyst"`, `"step 3"`, `"specialist"` (any
    step); the host's nodes `"think"`, `"direct_answer"`, `"plan_creation"`, `"feedback"`,
    `"plan_update"`, `"final_answer"`, `"memory_summary"`, `"knowledge"`; `"extract"` of a job; of a
    pipeline `"unit data_analysis"` (a phase) and `"unit"` (any phase), which come first; `"*"` (any
    call, also one whose prompt is not Replan's). The narrowest key that is in the script answers;
    when its replies are used up, the next call is an error, even if a wider key has some
    left. A list instead of a mapping means `"*"`.
    """

    def __init__(self, replies: Replies) -> None:
        if isinstance(replies, str):
            raise TypeError("A script is a mapping or a list of replies, not one text.")
        by_key = replies if isinstance(replies, Mapping) else {ANY: replies}
        self._entries = {_checked(key): deque(_entries(by_key[key])) for key in by_key}
        self._failures: list[AssertionError] = []
        self._lock = threading.Lock()

    @property
    def left(self) -> dict[str, int]:
        """The keys that still have replies, and how many; those for always do not count."""
        counts = {
            key: sum(not isinstance(entry, Always) for entry in entries)
            for key, entries in self._entries.items()
        }
        return {key: count for key, count in counts.items() if count}

    def take(self, call: Call | None, messages: Sequence[BaseMessage] = ()) -> Entry:
        """Take the next entry for a call.

        Raises:
            UnexpectedModelCall: There is none; it is also kept for `assert_finished`.
        """
        with self._lock:
            key = next((key for key in keys_of(call) if key in self._entries), None)
            entries = None if key is None else self._entries[key]
            if entries:
                first = entries[0]
                if isinstance(first, Always):
                    return first.reply
                entries.popleft()
                return first
            error = UnexpectedModelCall(call, self.left, messages[-1].text if messages else "")
            self._failures.append(error)
        raise error

    async def reply(self, call: Call | None, messages: Sequence[BaseMessage]) -> Reply:
        """Take the next reply for a call; where a function makes it, let it."""
        with self.remembering():
            entry = self.take(call, messages)
            value = entry(messages) if callable(entry) else entry
            return as_reply(await value if inspect.isawaitable(value) else value)

    def reply_now(self, call: Call | None, messages: Sequence[BaseMessage]) -> Reply:
        """Do the same without an event loop.

        Raises:
            TypeError: The function that makes the reply is asynchronous.
        """
        with self.remembering():
            entry = self.take(call, messages)
            value = entry(messages) if callable(entry) else entry
            if inspect.isawaitable(value):
                if inspect.iscoroutine(value):
                    value.close()
                raise TypeError("An asynchronous reply needs an asynchronous call of the model.")
            return as_reply(value)

    def assert_finished(self) -> None:
        """Check that each reply was used and that no call was left without one.

        A runtime may turn an exception of a model into a result, so an unexpected call, and any
        other failed assertion of a function that makes replies, is raised again here.

        Raises:
            UnexpectedModelCall: A call found no reply.
            UnconsumedReplies: Replies are left over.
        """
        if self._failures:
            raise self._failures[0]
        if self.left:
            raise UnconsumedReplies(self.left)

    def leave(self, error: BaseException | None) -> None:
        """End a `with` block: check, or only add a note to the exception that is in flight."""
        if error is None:
            self.assert_finished()
            return
        for failure in self._failures:
            if failure is not error:
                error.add_note(f"{type(failure).__name__}: {failure}")

    @contextlib.contextmanager
    def remembering(self) -> Generator[None]:
        """Keep a failed assertion of the block for `assert_finished`, and let it pass."""
        try:
            yield
        except UnexpectedModelCall:
            raise
        except AssertionError as error:
            self._failures.append(error)
            raise


def keys_of(call: Call | None) -> tuple[str, ...]:
    """The keys that a call is looked for under, the narrowest first."""
    if call is None:
        return (ANY,)
    if call.phase is not None:
        return (f"{call.node} {call.phase}", *keys_of(call.replace(phase=None)))
    if call.step is None:
        return (call.node, ANY)
    step = f"step {call.step}"
    narrow = (f"{step}/{call.specialist}", step) if call.specialist else (step,)
    return (*narrow, call.node, ANY)


def _checked(key: str) -> str:
    nodes: tuple[str, ...] = get_args(Caller)
    if key not in (*nodes, ANY) and not _NARROW_KEY.fullmatch(key):
        keys = ", ".join((*nodes, "step N", "step N/NAME", "unit PHASE", ANY))
        raise ValueError(f"{key!r} is not a key of a script. Use one of: {keys}.")
    return key


def _entries(value: Entry | Always | Sequence[Entry | Always]) -> tuple[Entry | Always, ...]:
    if isinstance(value, _SINGLE) or callable(value):
        return (value,)
    entries = tuple(value)
    if any(isinstance(entry, Always) for entry in entries[:-1]):
        raise ValueError("Nothing can follow a reply for always.")
    for entry in entries:
        if not callable(entry) and not isinstance(entry, Always):
            as_reply(entry)
    return entries


def _who(call: Call | None) -> str:
    if call is None:
        return "a call whose prompt is not Replan's"
    step = "" if call.step is None else f", step {call.step}"
    step += "" if call.phase is None else f", phase '{call.phase}'"
    specialist = "" if call.specialist is None else f", specialist '{call.specialist}'"
    return f"node '{call.node}'{step}{specialist}"


def _listed(left: Mapping[str, int]) -> str:
    return ", ".join(f"{count} for {key!r}" for key, count in left.items()) or "nothing"
