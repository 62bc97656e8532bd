"""Texts that would do harm on a page, each with a mark, and events that have them everywhere."""

from functools import cache
from pathlib import Path

from cases import read_page

HARM = """\
<script>window.pwned=1</script><img src=http://evil.example/a.png onerror="window.pwned=1">
<svg onload="window.pwned=1"></svg><iframe srcdoc="<script>parent.pwned=1</script>"></iframe>
<style>body{display:none}</style><div hx-post="/enter" hx-trigger="load">x</div>
<a data-hx-get="/leave" data-hx-trigger="load">y</a><base href="http://evil.example/">
<meta http-equiv="refresh" content="0;url=http://evil.example/"><form action=http://evil.example>
</pre></title></textarea>" onmouseover="window.pwned=1" x='{{ 7*7 }}
[a](javascript:window.pwned=1) ![b](http://evil.example/b.png) <javascript:window.pwned=1>
[c]: http://evil.example/c "x\u202e"
"""


class Harm:
    """Harmful texts, each with a mark of its own by which it is found on a page."""

    def __init__(self):
        self.marks = []

    def __call__(self, place):
        mark = f"zq{len(self.marks)}q"
        self.marks.append((mark, place))
        return f"{mark} {place} {HARM}"

    def line(self, place):
        return " ".join(self(place).split())


def harmful_events(harm, at):
    """Events of all kinds that tell what others wrote, as their page has them."""
    said = cache(harm)

    def filled(value):
        match value:
            case str():
                return said(value[1:-1]) if value.startswith("<") else value
            case dict():
                return {filled(name): filled(each) for name, each in value.items()}
            case list():
                return [*map(filled, value)]
        return value

    return [
        {"type": kind, "at": at.isoformat(), "round": 1, **filled(fields)}
        for each in read_page(Path(__file__).with_suffix(".yaml"))
        for kind, fields in each.items()
    ]
