"""The lines under the line of a step: its brief, parameters, result and further options.

A block quote is the step's result; one that begins with `**Failed:**`, `**Skipped:**` or
`**Note:**` is its feedback. A fenced `yaml` block holds parameters. A brief that would be misread
(it holds a quote, a `yaml` block or a key line itself) is written into a fence called `brief`.
"""

import re
from collections.abc import Sequence

from replan.plan.markdown.lines import (
    Verbatim,
    cut_indent,
    dedent,
    indent_of,
    is_blank,
    parts,
    trim_blank,
)
from replan.plan.markdown.title import Said
from replan.plan.model import PlanStep, StepStatus
from replan.plan.option_table import Phrase, read_key

_LABEL = re.compile(r"\*\*(Failed|Skipped|Note|Result):\*\*(?: |$)", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*> ?")
_KEY_LINE = re.compile(
    r"[ \t]*+(?:[-*+][ \t]++)?[*_]{0,2}(?P<key>[^:：*_`>\s][^:：*_`>]{0,29})[*_]{0,2}[ \t]*+[:：]"
    r"[ \t]*+(?:[*_]{1,2}(?=\s))?(?P<value>[^\n]{0,200})",
)
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MARKS = {StepStatus.FAILED: "Failed", StepStatus.SKIPPED: "Skipped"}


def read_body(lines: Sequence[str], said: Said, start: int) -> None:
    """Add what the lines under the line of a step say; the first of them is at `start`."""
    if not all(map(is_blank, lines)):
        _BodyReader(dedent(lines), said, start).read()


def key_phrase(line: str) -> Phrase | None:
    """Read a line such as `- **Depends on:** 1, 2`; None if it is not such a line."""
    match = _KEY_LINE.fullmatch(line)
    return None if match is None else read_key(match["key"].strip(), match["value"].strip(" \t.。"))


def write_body(step: PlanStep) -> list[str]:
    """Write the lines under a step, not indented, so that they are read back unchanged."""
    lines = _joined(step, step.brief.split("\n"))
    if not step.brief:
        return lines
    said = Said()
    read_body(lines, said, 0)
    # What is misread in a brief, or below it, is no longer a part of it, or is a mistake.
    if said.brief == step.brief and not said.complaints:
        return lines
    return _joined(step, _fence("brief", step.brief))


def write_quotes(step: PlanStep) -> list[str]:
    quotes: list[list[str]] = []
    if step.result:
        label = "**Result:** " if _LABEL.match(step.result) else ""
        quotes.append(_quote(label + step.result))
    if step.feedback:
        quotes.append(_quote(f"**{_MARKS.get(step.status, 'Note')}:** {step.feedback}"))
    return _spaced(quotes)


def _joined(step: PlanStep, brief: list[str]) -> list[str]:
    return _spaced([brief if step.brief else [], _parameters(step), write_quotes(step)])


def _parameters(step: PlanStep) -> list[str]:
    if not step.parameters:
        return []
    from replan.plan.markdown.parameters import write_parameters  # noqa: PLC0415 - few have any

    return _fence("yaml", write_parameters(step.parameters))


def _spaced(parts: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for part in filter(None, parts):
        lines += ["", *part] if lines else part
    return lines


def _fence(info: str, text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + info, *text.split("\n"), fence]


def _quote(text: str) -> list[str]:
    return [f"> {line}" if line else ">" for line in text.split("\n")]


class _BodyReader:
    """Goes through the lines of a body once and classifies them."""

    def __init__(self, lines: list[str], said: Said, start: int) -> None:
        self._lines = lines
        self._said = said
        self._start = start
        # The pieces of free text; a quote or a block separates them, a key line does not.
        self._pieces: list[list[str]] = [[]]
        self._verbatim_briefs: list[str] = []
        self._quotes: list[list[str]] = []
        self._has_parameters = False

    def read(self) -> None:
        list_indent: int | None = None
        for block, start, end in parts(self._lines):
            line = self._lines[start]
            if not is_blank(line) and list_indent is not None and indent_of(line) < list_indent + 2:
                list_indent = None
            in_list = list_indent is not None
            if in_list or not self._is_read(block, start, end):
                self._pieces[-1] += self._lines[start:end]
            if block is None and not in_list and _LIST_ITEM.match(line):
                list_indent = indent_of(line)
        briefs = ["\n".join(kept) for piece in self._pieces if (kept := trim_blank(piece))]
        self._said.brief = "\n\n".join([*briefs, *self._verbatim_briefs])
        results: list[str] = []
        feedback: list[str] = []
        for quote in map("\n".join, self._quotes):
            label = _LABEL.match(quote)
            is_result = label is None or label[1] == "Result"
            (results if is_result else feedback).append(quote[label.end() if label else 0 :])
        self._said.result = "\n\n".join(filter(None, results))
        self._said.feedback = "\n\n".join(filter(None, feedback))

    def _is_read(self, block: Verbatim | None, start: int, end: int) -> bool:
        """Whether a line, or those of a fence or a comment, are more than text."""
        if block is None:
            return self._is_said(start)
        end -= end - start > 1 and block.is_closed_by(self._lines[end - 1])
        inner = [cut_indent(line, block.indent) for line in self._lines[start + 1 : end]]
        if block.info in ("yaml", "yml"):
            self._read_parameters(inner, start)
        elif block.info == "brief":
            self._verbatim_briefs.append("\n".join(inner))
        else:
            return False
        self._pieces.append([])
        return True

    def _is_said(self, at: int) -> bool:
        """Whether a line is part of a quote, or says an option."""
        line, place = self._lines[at], self._start + at
        if line.lstrip(" \t").startswith(">"):
            if place - 1 not in self._said.quoted:
                self._quotes.append([])
                self._pieces.append([])
            self._quotes[-1].append(_QUOTE_MARK.sub("", line, count=1))
            self._said.quoted.add(place)
            return True
        phrase = key_phrase(line)
        # One that cannot be read stays in the brief, so that whoever reads the rest loses nothing.
        if phrase is None or not self._said.take(phrase, place):
            return False
        self._said.key_lines.append(place)
        return True

    def _read_parameters(self, inner: list[str], start: int) -> None:
        if self._has_parameters:
            reason = "This step has more than one yaml block."
            self._mistake(start, "several_parameters", reason, "Put all parameters into one.")
            return
        self._has_parameters = True
        from replan.plan.markdown.parameters import (  # noqa: PLC0415 - few steps have any
            ParametersError,
            read_parameters,
        )

        try:
            self._said.parameters = read_parameters("\n".join([*inner, ""]))
        except ParametersError as error:
            reason = f"The parameters cannot be read. {error.problem}"
            fix = "Write one `name: value` a line; quote a value that contains `: `, `#` or `@`."
            last = min(start + 1 + len(inner), len(self._lines) - 1)
            self._mistake(min(start + 1 + error.line, last), "bad_parameters", reason, fix)

    def _mistake(self, at: int, code: str, reason: str, fix: str) -> None:
        self._said.complain(self._start + at, code, self._lines[at].strip(), reason, fix)
