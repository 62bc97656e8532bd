"""Stream the body of a reply while it arrives, without its front matter."""

from collections.abc import Callable

from replan.replies.forms.front_matter import DELIMITER, MAX_LINES, Header, read_header
from replan.replies.forms.thoughts import POSSIBLE, Thought, opens_thought
from replan.replies.forms.wrapping import BLANK, MARKDOWN, opens_fence, plain, skip_blank
from replan.replies.reply import HOST_KEYS, RULES

_FENCES = ("```", "~~~")
_FENCE_BEGINNINGS = ("", "`", "``", "~", "~~")
_LONGEST_FENCE = 200
_LONGEST_MARK = 40
_MARKS = "<[◁"


class Shown:
    """Returns a text piece by piece, up to where thoughts, blanks or the end of it may begin."""

    def __init__(self) -> None:
        self._blanks: list[str] = []
        self._has_begun = self._has_ended = False
        self._held: str = ""

    def feed(self, text: str) -> str:
        if self._has_ended or not text:
            return ""
        if not self._held and not text.strip(BLANK):
            self._blanks.append(text)
            return ""
        text = "".join(self._blanks) + self._held + text
        self._blanks, self._held = [], ""
        if not self._has_begun:
            text = text[skip_blank(text) :]
        mark = POSSIBLE.search(text)
        self._has_ended = mark is not None
        end = _start_of_open_mark(text) if mark is None else mark.start()
        shown = text[:end].rstrip(BLANK)
        self._has_begun = self._has_begun or bool(shown)
        if end < len(text):
            self._held = text[len(shown) :]
        else:
            self._blanks.append(text[len(shown) :])
        return shown


def _start_of_open_mark(text: str) -> int:
    """Find where a mark may have begun that is not complete yet."""
    start = max(0, len(text) - _LONGEST_MARK)
    line = text.rfind("\n", start) + 1
    if line and text[line:].lstrip(" \t").startswith(("`", "~")):
        return line
    for at in range(len(text) - 1, start - 1, -1):
        if text[at].isspace():
            return len(text)
        if text[at] in _MARKS:
            return at
    return len(text)


class BodyStream:
    """Returns the body of a reply as it is streamed; nothing if it is not in the plain form."""

    def __init__(self) -> None:
        self.fields: dict[str, str] | None = None
        self.is_streaming = False
        self._is_open = True
        self._return = ""
        self._line: list[str] = []
        self._lines: list[str] = []
        self._header: Header | None = None
        self._shown = Shown()
        self._thought: Thought | None = None
        self._take: Callable[[str], None] = self._take_start

    def feed(self, chunk: str) -> str:
        """Take the next piece of the reply, and return what is certain to be shown of the body."""
        text = self._plain(chunk)
        at = 0
        while self._is_open and not self.is_streaming:
            end = text.find("\n", at)
            self._line.append(text[at : end if end >= 0 else len(text)])
            at = end + 1 if end >= 0 else len(text)
            if end < 0:
                self._peek()
                break
            line = "".join(self._line)
            self._line = []
            self._take(line)
            if self.is_streaming:  # the first line of the body is shown with its end
                self._line = [line, "\n"]
        if not self.is_streaming:
            return ""
        given = self._shown.feed("".join(self._line) + text[at:])
        self._line = []
        return given

    def _plain(self, chunk: str) -> str:
        """Normalize a piece; a carriage return at its end may be half of a line end."""
        text = self._return + chunk
        self._return = "\r" if text.endswith("\r") else ""
        return plain(text.removesuffix("\r"))

    def _take_start(self, line: str) -> None:
        line = line[skip_blank(line) :]
        self._thought = opens_thought(line)
        if self._thought is not None:
            self._take = self._take_thinking
            self._take_thinking(line[self._thought.end :])
        elif DELIMITER.fullmatch(line):
            self._take = self._take_header
        elif line.strip(BLANK):
            self._is_open = False

    def _take_thinking(self, line: str) -> None:
        closed = self._thought.close.search(line) if self._thought else None
        if closed is not None:
            self._take = self._take_start
            self._take_start(line[closed.end() :])

    def _take_header(self, line: str) -> None:
        if not DELIMITER.fullmatch(line):
            self._lines.append(line)
            self._is_open = len(self._lines) <= MAX_LINES
            return
        self._header = read_header(self._lines, HOST_KEYS, text_follows=True)
        header = self._header
        self._is_open = bool(header and header.end == len(self._lines) and not header.body)
        self._take = self._take_body

    def _take_body(self, line: str) -> None:
        text = line.strip(BLANK)
        # A body that is wholly a block of Markdown is unwrapped, which needs its end.
        shown = line[skip_blank(line) :].rstrip(BLANK)
        if opens_fence(shown) in MARKDOWN or _is_long_mark(text) or _may_be_more(text):
            self._is_open = False
        elif text and not text.strip(RULES):
            self._is_open = False  # rules around nothing are not a body
        elif text:
            self._begin()

    def _peek(self) -> None:
        """Check whether the body begins with a line that is not complete yet."""
        if self._take != self._take_body or not self._line[-1].strip(BLANK):
            return
        line = "".join(self._line)
        self._line = [line]
        text = line.strip(BLANK)
        if _is_long_mark(text) or text[0] in _MARKS:
            self._is_open = False
        elif text.startswith(_FENCES) or text in _FENCE_BEGINNINGS or not text.strip(RULES):
            return
        else:
            self._begin()

    def _begin(self) -> None:
        self.is_streaming = True
        self.fields = self._header.fields if self._header else {}


def _may_be_more(text: str) -> bool:
    """Whether a body that begins so may begin with thoughts or a second front matter."""
    is_rule = bool(text) and DELIMITER.fullmatch(text) is not None
    return is_rule or text.startswith(tuple(_MARKS)) or opens_thought(text) is not None


def _is_long_mark(text: str) -> bool:
    """Whether waiting for the end of this fence or rule would take too long."""
    return len(text) > _LONGEST_FENCE and (text.startswith(_FENCES) or not text.strip(RULES))
