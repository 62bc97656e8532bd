"""Stream the body of a reply while it arrives, without its front matter."""

import re
from collections.abc import Callable, Mapping

from replan.prompts.replies.keys import HOST, squeezed
from replan.prompts.replies.reply import DELIMITER, MOST_LINES, read_reply
from replan.prompts.replies.wrapping import BLANK, OPENED, begun, end_of_thoughts, plain

Gate = Callable[[Mapping[str, str]], bool]
"""Whether a reply with this front matter carries a body that may be shown."""

_LONGEST_LINE = 200
_OPENS_ALL = re.compile(r"[ \t]*(?:`{3,}|~{3,})(?:md|markdown)?[ \t]*\n", re.IGNORECASE)
# The beginning of a first line that may be a fence, a rule or thoughts.
_UNDECIDED = re.compile(
    r"[ \t]*(?:`{1,2}|~{1,2}|(?:`{3}|~{3})[^\n]{0,40}|-+[ \t]*|\.{1,3}|[<\[◁][\w/]{0,15})"
)
_WRAPPED = ("<", "---", "[", "{", "◁", "```", "~~~")
"""With what a reply may begin that is not all shown."""
_COLON = re.compile("[:\uff1a]")
# What is taken off the end of a reply: blanks and the tokens of a chat template.
_END = re.compile(r"(?:\s|<\|?[^<>\s]{0,40}\|?>)*(?:<[^<>\s]{0,40})?\Z")
_REACH = 200


class BodyStream:
    """Returns the body of a reply as it is streamed; nothing if it is not in the plain form.

    Without a gate the reply is all body.
    """

    def __init__(self, gate: Gate | None = lambda _: True) -> None:
        self.fields: dict[str, str] | None = None
        self.is_streaming = False
        self._gate = gate
        self._is_open = True
        self._carriage_return = self._text = self._held = ""
        self._body_start = self._read_length = 0

    def feed(self, chunk: str) -> str:
        """Take the next piece of the reply, and return what is certain to be shown of the body."""
        text = self._carriage_return + chunk
        # A carriage return at the end may be half of a line end.
        self._carriage_return = "\r" if text.endswith("\r") else ""
        text = plain(text.removesuffix("\r"))
        if not self.is_streaming:
            if not self._is_open:
                return ""
            self._text += text
            text = begun(self._text if self._gate is None else self._body(self._gate))
            self.is_streaming = text != "" if self._gate else not _may_be_wrapped(text)
            if not self.is_streaming:
                return ""
        text = self._held + text
        # Blanks, and tokens that end the reply, are not shown before more comes.
        end = _END.search(text, max(0, len(text) - _REACH))
        at = len(text[: end.start()].rstrip(BLANK)) if end else len(text)
        shown, self._held = text[:at], text[at:]
        return shown

    def _body(self, gate: Gate) -> str:
        """The body as far as it is there, once it is certain that there is one to show."""
        if not self._pass_thoughts():
            return ""
        head = self._text[self._body_start :].lstrip(BLANK)
        first, newline, rest = head.partition("\n")
        if not newline or not DELIMITER.fullmatch(first):
            self._is_open = not newline and len(head) <= _LONGEST_LINE
            return ""
        closed = DELIMITER.search(rest)
        if closed is None or closed.end() == len(rest):
            self._is_open = rest.count("\n") <= MOST_LINES
            return ""
        body = rest[closed.end() :].lstrip(BLANK)
        if not body or _UNDECIDED.fullmatch(body):
            return ""
        reply = read_reply(f"{first}\n{rest[: closed.end()]}\nx", HOST)
        is_plain = bool(reply.fields) and not reply.problem and reply.body == "x"
        is_wrapped = _OPENS_ALL.match(body) or OPENED.match(body) or DELIMITER.match(body)
        self._is_open = is_plain and not is_wrapped and gate(reply.fields)
        if not self._is_open:
            return ""
        self.fields = dict(reply.fields)
        return rest[closed.end() :]

    def _pass_thoughts(self) -> bool:
        """Go behind closed thoughts; False where their end, or the first line, is not there."""
        while opened := OPENED.match(self._text, self._body_start):
            end = end_of_thoughts(self._text, opened, max(opened.end(), self._read_length))
            if end < 0:
                # Only the last characters may be the beginning of the closing mark, which is one
                # longer than the opening one: the next search begins there.
                self._read_length = max(opened.end(), len(self._text) - len(opened[0]) - 1)
                return False
            self._body_start = self._read_length = end
        return "\n" in self._text[self._body_start :]


def _may_be_wrapped(text: str) -> bool:
    """Whether a text with this beginning may begin with something that is not shown."""
    text = text.lstrip(BLANK)
    if any(text.startswith(mark) or mark.startswith(text) for mark in _WRAPPED):
        return True
    line, newline, _ = text.partition("\n")
    written, *value = _COLON.split(line[:_REACH], maxsplit=1)
    name = squeezed(written)
    return name in HOST if value else not newline and any(key.startswith(name) for key in HOST)
