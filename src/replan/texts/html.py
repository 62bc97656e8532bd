"""The passages of an HTML page: what a reader of the page reads, at the lines of its source."""

from collections.abc import Iterator
from html.parser import HTMLParser

from replan.texts.passages import Passage, cut

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
# What is inside a line of text ends no passage.
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "dfn", "em", "font", "i", "img"}
    | {"ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup"}
    | {"td", "th", "time", "tt", "u", "var", "wbr"}
)


def html_passages(name: str, text: str) -> Iterator[Passage]:
    """Divide a page at its blocks."""
    reader = _Reader(name)
    reader.feed(text)
    reader.close()
    reader.end_block()
    for each in reader.found:
        yield from cut(each)


class _Reader(HTMLParser):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.found: list[Passage] = []
        self._name = name
        self._heading = ""
        self._hidden = 0
        self._line = 1
        self._block: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._at(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        if tag in _HEADINGS:
            self._heading = self._text() or self._heading
            self._block = []
        self._at(tag)

    def handle_data(self, data: str) -> None:
        if self._hidden or not (data.strip() or self._block):
            return
        if not self._block:
            before = data[: len(data) - len(data.lstrip())]
            self._line = self.getpos()[0] + before.count("\n")
        self._block.append(data)

    def end_block(self) -> None:
        text = self._text()
        if text:
            passage = Passage(file=self._name, line=self._line, heading=self._heading, text=text)
            self.found.append(passage)
        self._block = []

    def _at(self, tag: str) -> None:
        if tag in _INLINE:
            self._block += [" "] if self._block and tag in ("br", "td", "th") else []
        else:
            self.end_block()

    def _text(self) -> str:
        return " ".join("".join(self._block).split())
