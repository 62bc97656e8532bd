"""A span that is open, with those below it, and which of them is at work here."""

import time
from contextvars import ContextVar

from opentelemetry import context as current
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context as with_span,
)

from replan.traces.conventions import OUTCOME, Attributes


class Node:
    """A span that is open."""

    __slots__ = ("before", "began", "below", "context", "is_open", "key", "parent", "span")

    def __init__(self, span: Span, around: Context, parent: "Node | None", key: object) -> None:
        self.span = span
        self.context = with_span(span, around)
        self.parent = parent
        self.key = key
        self.below: dict[object, Node] = {}
        self.is_open = True
        self.began = time.monotonic()
        self.before: tuple[Context, Node | None] | None = None  # what was at work around it

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    def open_below(
        self,
        tracer: Tracer,
        key: object,
        name: str,
        about: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        ago: float = 0.0,
    ) -> "Node":
        """Open a span below this one, or below the current span if that is inside this one.

        It began `ago` seconds before now, if that is more than 0.
        """
        parent, around = self._inmost()
        began = time.time_ns() - int(ago * 1e9) if ago else None
        span = tracer.start_span(name, around, kind, about, start_time=began)
        node = parent.below[key] = Node(span, around, parent, key)
        return node

    def close(self, about: Attributes, failed: str | None = None) -> None:
        """Close it, and what is still open below it; `failed` says why it has an error's status."""
        if not self.is_open:
            return
        self.is_open = False
        for node in list(self.below.values()):
            node.close({OUTCOME: about.get(OUTCOME, "unfinished")})
        if failed is not None:
            self.span.set_status(Status(StatusCode.ERROR, failed or None))
        self.span.set_attributes(about)
        self.span.end()
        if self.parent is not None:
            self.parent.below.pop(self.key, None)

    def enter(self) -> None:
        """Become the current span: what is traced from now on in this context is below it."""
        self.before = current.get_current(), _current.get()
        current.attach(self.context)
        _current.set(self)

    def leave(self) -> None:
        """Be the current span no longer; in another context it may never have been."""
        if self.before is not None and _current.get() is self:
            current.attach(self.before[0])
            _current.set(self.before[1])

    def _inmost(self) -> tuple["Node", Context]:
        """The innermost open span inside this one that is current here; else this one."""
        node = here = _current.get()
        while node is not None and not node.is_open:
            node = node.parent
        inside = node
        while inside is not None and inside is not self:
            inside = inside.parent
        if node is None or inside is None:
            return self, self.context
        return node, current.get_current() if node is here else node.context


_current: ContextVar[Node | None] = ContextVar("replan_span", default=None)


def root(tracer: Tracer, name: str, about: Attributes, links: list[Link]) -> Node:
    """Open the span of a run, below the caller's own."""
    around = current.get_current()
    span = tracer.start_span(name, around, attributes=about, links=links)
    return Node(span, around, None, None)
