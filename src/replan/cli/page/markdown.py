"""Markdown of models, tools and files as HTML that can neither run nor fetch anything."""

from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from replan.base.texts.signs import harmless

_LONGEST = 500_000
_TEXT = ("a", "blockquote", "br", "code", "del", "em", "hr", "p", "pre", "strong")
_LISTS = ("dd", "dl", "dt", "li", "ol", "ul")
_TABLES = ("table", "tbody", "td", "th", "thead", "tr")
_TAGS = {*_TEXT, *_LISTS, *_TABLES, "h1", "h2", "h3", "h4", "h5", "h6"}
# A link opens in a new page and tells nothing of this one.
_REL = "noopener noreferrer nofollow"


@lru_cache(maxsize=128)
def safe(text: str) -> Markup:
    """Render a text, and keep only its harmless parts.

    There are no images, no styles, and no attributes but the address of a link and the first number
    of a list. What is round it has `data-hx-disable`.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n\n(cut here: it is longer than {_LONGEST:,} characters)"
    # Signs that turn the order of others round, or are not seen, are shown for what they are.
    rendered = MarkdownIt("commonmark", {"html": False}).enable("table").render(harmless(text))
    cleaned = nh3.clean(
        rendered,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel=_REL,
    )
    return Markup(cleaned)  # noqa: S704 - this is the one place that makes it so
