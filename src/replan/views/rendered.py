"""Show Markdown as people read it: tables, lists, bold, code. Nothing of it is lost, or steers."""

from collections.abc import Iterable, Iterator
from itertools import dropwhile
from typing import ClassVar, TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from replan.base.texts.signs import harmless
from replan.views.cells import wrapped

_LONGEST, _DEEPEST, _NARROWEST = 50_000, 12, 30
_LEAST_COLUMN, _GAP = 5, 2
_CODE_INDENT = 2
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_THEME = Theme(
    {
        "markdown.h1": "bold underline",
        **{f"markdown.h{level}": "bold" for level in range(2, 7)},
        "markdown.code": "cyan",
        "markdown.code_block": "cyan",
        "markdown.block_quote": "italic",
        "markdown.item.number": "none",
        "markdown.table.header": "bold",
        "markdown.table.border": "dim",
    }
)


def console_on(output: TextIO) -> Console:
    """A console on which texts of models and files are never markup."""
    return Console(file=output, highlight=False, markup=False, emoji=False)


def columns_of(console: Console) -> int:
    """The cells of a line; some terminals break one already when its last cell is written."""
    return max(1, console.width - 1)


def print_markdown(console: Console, text: str, *, indent: int = 0) -> None:
    """Print a text in Markdown; as it was written where it is too long or the place too narrow."""
    width = columns_of(console)
    text = harmless(text).strip("\n")
    tokens = _PARSER.parse(text) if len(text) <= _LONGEST else []
    is_deep = any(token.level > _DEEPEST for token in tokens)
    is_poor = console.is_dumb_terminal or not console.encoding.lower().startswith("utf")
    if not tokens or is_deep or is_poor or width - indent < _NARROWEST:
        lead = " " * indent
        lines = (f"{lead}{line}".rstrip() for line in wrapped(text, width - indent))
        console.print(Text("\n".join(lines)), soft_wrap=True)
        return
    shown = Padding(_Document(text, tokens), (0, 0, 0, indent), expand=False)
    with console.use_theme(_THEME):
        lines = console.render_lines(shown, console.options.update(width=width), pad=False)
    # Rich puts an empty line before a table, also where nothing is above it.
    for line in dropwhile(_is_empty, lines):
        console.print(_Line(line), soft_wrap=True)


def _is_empty(line: Iterable[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)


class _Line:
    """One line, without blanks at its end and without control sequences of terminals."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        while self._segments and not self._segments[-1].text.strip():
            self._segments.pop()
        last = len(self._segments) - 1
        for place, (text, style, _) in enumerate(self._segments):
            # A character may be spelt as an entity such as `&#x202e;`.
            shown = harmless(text.rstrip() if place == last else text)
            yield Segment(shown, style)
        yield Segment.line()


class _Heading(Heading):
    """A heading at the left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Code(CodeBlock):
    """Code as it is; colours would take a lexer for each language, of which some are slow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Text(self.text.plain.rstrip("\n"), "markdown.code_block", overflow="fold")
        yield Padding(code, (0, 0, 0, _CODE_INDENT))


class _TableInCells(TableElement):
    """A table whose cells are wrapped, never cut; as it was written where there is no room."""

    source = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_TableInCells":
        made = cls()
        begin, end = token.map or (0, 0)
        made.source = "\n".join(markdown.markup.split("\n")[begin:end])
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self.header.row.cells if self.header and self.header.row else []
        if len(head) * (_LEAST_COLUMN + _GAP) > options.max_width:
            yield Text(self.source, overflow="fold")
            return
        table = Table(
            box=SIMPLE_HEAD, pad_edge=False, show_edge=False, style="markdown.table.border"
        )
        for cell in head:
            table.add_column(cell.content, overflow="fold", header_style="markdown.table.header")
        for row in self.body.rows if self.body else []:
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Document(Markdown):
    """A text that was parsed, with elements of our own."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _TableInCells,
    }

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__("")
        self.markup = text
        for token in tokens:
            token.children = list(_inline(token.children or []))
        self.parsed = tokens


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the words of a paragraph: its lines stay lines, and addresses are behind links."""
    addresses: list[str] = []
    for token in tokens:
        match token.type:
            case "softbreak":
                yield Token("hardbreak", "br", 0)
            case "image":
                yield _text(f"{token.content} ({token.attrs.get('src', '')})".strip())
            case "link_open":
                is_shown = token.markup == "autolink"
                addresses.append("" if is_shown else f" ({token.attrs.get('href', '')})")
            case "link_close":
                yield _text(addresses.pop())
            case _:
                yield token


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
