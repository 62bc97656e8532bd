"""The marks in an answer that cite sources: what they name is listed, others go."""

import re
from collections.abc import Iterator, Sequence

from replan.state.knowledge import Source

_MARK = re.compile(r"[ \t]*+\[\[(?P<names>[^\[\]\n]{1,400})\]\]")
_CODE = re.compile(r"^(?P<fence>`{3,}+|~{3,}+)[\s\S]*?(?:^(?P=fence)|\Z)|`[^`\n]+`", re.MULTILINE)
_BETWEEN = re.compile(r"\]\](?:, ?|; ?)\[\[|[,;] *")
_RANGE = re.compile(r"(?<=\d)-\d+$")
_LINE = re.compile(r"(?P<name>.*):(?P<line>\d{1,9})(?:-\d+)?")


def cited(text: str, sources: Sequence[Source]) -> tuple[str, str]:
    """Give a text without the marks that name no source, and the list of those that are cited."""
    if not sources:
        return text, ""
    found: dict[str, str] = {}
    parts, at = list[str](), 0
    for code in _CODE.finditer(text):
        parts += [_checked(text[at : code.start()], sources, found), code.group()]
        at = code.end()
    parts.append(_checked(text[at:], sources, found))
    listed = "\n".join(f"- {each}" for each in found.values())
    return "".join(parts), f"**Sources:**\n\n{listed}" if listed else ""


def _checked(text: str, sources: Sequence[Source], found: dict[str, str]) -> str:
    def kept(mark: re.Match[str]) -> str:
        named = [*_named(mark["names"], sources)]
        found.update((name, _listed(name, source)) for name, source in named)
        if not named:
            return ""
        before = mark.group().partition("[[")[0]
        return before + ", ".join(f"[[{name}]]" for name, _ in named)

    return _MARK.sub(kept, text)


def _named(names: str, sources: Sequence[Source]) -> Iterator[tuple[str, Source]]:
    for name in _BETWEEN.split(names):
        bare = name.strip()
        source = next((each for each in sources if _is_of(bare, each)), None)
        if source is not None:
            # Of a range its first line counts.
            yield bare if source.line is None else _RANGE.sub("", bare), source


def _is_of(name: str, source: Source) -> bool:
    if source.line is None:
        return name == source.source
    place = _LINE.fullmatch(name)
    if place is None or place["name"] != source.source:
        return False
    return source.line <= int(place["line"]) <= (source.last_line or source.line)


def _listed(name: str, source: Source) -> str:
    return f"{name} ({source.heading})" if source.heading else name
