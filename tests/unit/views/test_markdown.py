"""Markdown on a terminal: readable, whole, and harmless."""

import io
import re
import time

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from cases import cases_of, check_cases
from replan.views.rendered import print_markdown

TABLE = """\
| region | total revenue |
| --- | ---: |
| North | 129231 |
| 東京 | 3 |
"""
PIECES = [
    *("#", "- ", "1. ", "> ", "|", "|-|", "\n", "\n\n", "```", "    ", "*", "**", "_", "`", "~~"),
    *("[", "](", "x)", "<", ">", "![", "---", "\\", "\t", "word", "東京", "| a |\n|---|\n| b |\n"),
    *("&#x1b;", "&#x202e;", "\x1b[2J", "\u202e", "\x9b", "http://a.b", "123456789. ", "<b>"),
]


class Screen(io.StringIO):
    encoding = "utf-8"


def shown(text, width=60, *, encoding="utf-8", colour=True, **variables):
    screen = Screen()
    screen.encoding = encoding
    console = Console(
        file=screen, force_terminal=True, width=width, no_color=not colour, _environ=variables
    )
    print_markdown(console, text)
    return screen.getvalue()


def plain(text, width=60, **options):
    return re.sub(r"\x1b\[[0-9;]*m", "", shown(text, width, **options))


@pytest.mark.parametrize("name", cases_of(__file__))
def test_markdown_is_shown_as_the_page_has_it(name):
    check_cases(__file__, name, lambda section, text: plain(text, section["width"]).splitlines())


def test_what_is_bold_or_code_is_drawn_so_and_a_line_stays_a_line():
    assert shown("**big** `x`\nnext") == "\x1b[1mbig\x1b[0m \x1b[36mx\x1b[0m\nnext\n"
    assert shown("**big** `x`", colour=False) == "\x1b[1mbig\x1b[0m x\n"


@pytest.mark.parametrize("text", ["x" * 60_000, "> " * 20 + "deep", TABLE])
def test_what_is_too_much_for_it_is_printed_as_it_was_written(text):
    width = 24 if text is TABLE else 100
    assert "".join(plain(text, width).split()) == "".join(text.split())


def test_a_terminal_that_shows_no_signs_gets_the_text():
    assert plain("- **a**", encoding="ascii") == "- **a**\n"
    assert plain("- **a**", TERM="dumb") == "- **a**\n"


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.sampled_from([24, 31, 40, 60, 100]))
def test_no_text_steers_the_terminal_or_is_wider_than_it(pieces, width):
    text = plain("".join(pieces), width)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    if "|" not in text and "```" not in text:
        assert all(cell_len(line.expandtabs()) < width for line in text.splitlines())


@pytest.mark.parametrize(
    "text", ["[" * 24_000, "*a **b " * 3_500, "`a" * 12_000, "- a\n" * 6_000, "[a](b " * 4_000]
)
def test_a_text_of_a_model_takes_no_long_time(text):
    began = time.process_time()
    shown(text, 80)
    assert time.process_time() - began < 2.5
