"""The marks in an answer that cite sources: known sources are listed, other marks removed."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from replan.state.knowledge import Source

_MARK = re.compile(r"(?<![ \t])[ \t]*+\[\[(?P<names>[^\[\]\n]{1,400})\]\]")
_CODE = re.compile(r"^(?P<fence>`{3,}+|~{3,}+)[\s\S]*?(?:^(?P=fence)|\Z)|`[^`\n]+`", re.MULTILINE)
_BETWEEN = re.compile(r"\]\](?:, ?|; ?)\[\[|[,;] *")
_RANGE = re.compile(r"(?<=\d)-\d+$")
MOST_PARTS = 6
"""The most pieces of a name that contains commas."""

_LINE = re.compile(r"(?P<name>.*):(?P<line>\d{1,9})(?:-\d+)?")


_Known = Mapping[str, Sequence[Source]]


def cited(text: str, sources: Sequence[Source]) -> tuple[str, str]:
    """Return a text without marks of unknown sources, and the list of the cited sources."""
    if not sources:
        return text, ""
    known, found = _by_name(sources), dict[str, str]()
    text = _outside_code(text, lambda part: _without_unknown_marks(part, known, found))
    listed = "\n".join(f"- {each}" for each in found.values())
    return text, f"**Sources:**\n\n{listed}" if listed else ""


def cited_among(text: str, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources that the marks in a text name."""
    known, marks = _by_name(sources), _MARK.finditer(_CODE.sub("", text))
    named = [source for mark in marks for _, source in _named(mark["names"], known)]
    return tuple(each for each in sources if each in named)


def without_places(text: str) -> str:
    """Remove marks from a text that had no sources, since they can only be invented."""

    def kept(mark: re.Match[str]) -> str:
        names = _BETWEEN.split(mark["names"])
        return "" if all(_LINE.fullmatch(name.strip()) for name in names) else mark.group()

    return _outside_code(text, lambda part: _MARK.sub(kept, part))


def _outside_code(text: str, work: Callable[[str], str]) -> str:
    parts, at = list[str](), 0
    for code in _CODE.finditer(text):
        parts += [work(text[at : code.start()]), code.group()]
        at = code.end()
    return "".join([*parts, work(text[at:])])


def _by_name(sources: Sequence[Source]) -> _Known:
    known: dict[str, list[Source]] = {}
    for each in sources:
        known.setdefault(each.source, []).append(each)
    return known


def _without_unknown_marks(text: str, known: _Known, found: dict[str, str]) -> str:
    def kept(mark: re.Match[str]) -> str:
        named = [*_named(mark["names"], known)]
        for name, source in named:
            found[name] = f"{name} ({source.heading})" if source.heading else name
        if not named:
            return ""
        before = mark.group().partition("[[")[0]
        return before + ", ".join(f"[[{name}]]" for name, _ in named)

    return _MARK.sub(kept, text)


def _named(names: str, known: _Known) -> Iterator[tuple[str, Source]]:
    """Yield the sources that the text of a mark names, with their names as written."""
    breaks = [*_BETWEEN.finditer(names)]
    begins = [0, *(each.end() for each in breaks)]
    ends = [*(each.start() for each in breaks), len(names)]
    at = 0
    while at < len(begins):
        # A file's own name may hold what is between names: the longest one counts.
        lasts = range(at, len(ends))[:MOST_PARTS][::-1]
        parts = ((last, names[begins[at] : ends[last]].strip()) for last in lasts)
        tried = ((last, bare, _source_named(bare, known)) for last, bare in parts)
        last, bare, source = next((each for each in tried if each[2]), (at, "", None))
        if source is not None:
            # Of a range its first line counts.
            yield bare if source.line is None else _RANGE.sub("", bare), source
        at = last + 1


def _source_named(name: str, known: _Known) -> Source | None:
    place = _LINE.fullmatch(name)
    if place is not None:
        line = int(place["line"])
        for each in known.get(place["name"], ()):
            if each.line and each.line <= line <= (each.last_line or each.line):
                return each
    return next((each for each in known.get(name, ()) if each.line is None), None)
