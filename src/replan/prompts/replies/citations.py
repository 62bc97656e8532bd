"""The marks in an answer that cite sources: known sources are listed, other marks removed."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from replan.state.knowledge import Source

_MARK = re.compile(r"(?<![ \t])[ \t]*+\[\[(?P<names>[^\[\]\n]{1,400})\]\]")
_CODE = re.compile(r"^(?P<fence>`{3,}+|~{3,}+)[\s\S]*?(?:^(?P=fence)|\Z)|`[^`\n]+`", re.MULTILINE)
_BETWEEN = re.compile(r"\]\](?:, ?|; ?)\[\[|[,;] *")
_LINE = re.compile(r".*:\d{1,9}(?:-\d+)?")


_Known = Mapping[str, Sequence[Source]]


def cited(text: str, sources: Sequence[Source]) -> tuple[str, str]:
    """Return a text without marks of unknown sources, and the list of the cited sources."""
    if not sources:
        return text, ""
    sources_by_name, found = _by_name(sources), dict[str, str]()
    text = _outside_code(text, lambda part: _without_unknown_marks(part, sources_by_name, found))
    listed = "\n".join(f"- {source}" for source in found.values())
    return text, f"**Sources:**\n\n{listed}" if listed else ""


def cited_among(text: str, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources that the marks in a text name."""
    sources_by_name, marks = _by_name(sources), _MARK.finditer(_CODE.sub("", text))
    named = [source for mark in marks for _, source in _named(mark["names"], sources_by_name)]
    return tuple(source for source in sources if source in named)


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
    sources_by_name: dict[str, list[Source]] = {}
    for source in sources:
        sources_by_name.setdefault(source.source, []).append(source)
    return sources_by_name


def _without_unknown_marks(text: str, sources_by_name: _Known, found: dict[str, str]) -> str:
    def kept(mark: re.Match[str]) -> str:
        named = [*_named(mark["names"], sources_by_name)]
        for name, source in named:
            found[name] = f"{name} ({source.heading})" if source.heading else name
        if not named:
            return ""
        before = mark.group().partition("[[")[0]
        return before + ", ".join(f"[[{name}]]" for name, _ in named)

    return _MARK.sub(kept, text)


def _named(names: str, sources_by_name: _Known) -> Iterator[tuple[str, Source]]:
    """Yield the sources that the text of a mark names, with their names as written."""
    # A file's own name may hold what is between names: the longest one counts.
    any_name = "|".join(map(re.escape, sorted(sources_by_name, key=len, reverse=True)))
    between = _BETWEEN.pattern
    place = rf"(?:^|{between})\s*({any_name})(?::(\d{{1,9}})(?:-\d+)?)?(?=\s*(?:$|{between}))"
    for name, line in re.findall(place, names) if sources_by_name else ():
        if source := _source_at(int(line) if line else None, sources_by_name[name]):
            # Of a range its first line counts.
            yield f"{name}:{line}" if line else name, source


def _source_at(line: int | None, sources: Sequence[Source]) -> Source | None:
    """The source that has a line, or that has none."""
    for source in sources:
        last = source.last_line or source.line
        if source.line == line or (source.line and line and last and source.line <= line <= last):
            return source
    return None
