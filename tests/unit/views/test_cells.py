"""Text is measured, cut and wrapped by the cells that it takes."""

import unicodedata

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from cases import cases_of, check_cases
from replan.base.texts.signs import harmless
from replan.views.cells import cut, folded, one_line, padded, steady, wrapped

SHOWN = {"cut": cut, "wrapped": lambda text, width: list(wrapped(text, width))}


@pytest.mark.parametrize("name", cases_of(__file__))
def test_a_text_is_shown_as_the_page_has_it(name):
    check_cases(__file__, name, lambda section, text: SHOWN[section["by"]](text, section["width"]))


def test_what_steers_a_terminal_is_replaced():
    assert harmless("a\x1b[31mb\x9b\u202e\ud800\tc\r\n") == "a�[31mb���\tc\n"
    assert one_line("a\n b\x07") == "a b�"


def test_what_is_not_seen_is_replaced_and_what_joins_letters_stays():
    assert harmless("pay\u200bpal\ufeff \u2063a\u00ad\U000e0041\u3164") == "pay�pal� �a���"
    persian, hindi = "\u0645\u06cc\u200c\u062e\u0648", "\u0915\u094d\u200d\u0937"
    for text in (persian, hindi, "❤\ufe0f", "👨\u200d👩"):
        assert harmless(text) == text


def test_emoji_that_are_joined_stand_apart_where_it_is_drawn_over():
    assert steady("👨\u200d👩\u200d👧 ❤\ufe0f 👍\U0001f3fd") == "👨👩👧 ❤ 👍"


@pytest.mark.parametrize("text", ["\u200d\u200d漢 b", "\u200d\u200d👍a", "a\u200d\u200d👩é"])
def test_joiners_with_nothing_to_join_are_cut_and_folded_like_other_text(text):
    for width in range(5):
        assert cell_len(cut(text, width)) <= width
        assert "".join("".join(folded(text, max(2, width))).split()) == "".join(text.split())


@given(st.text(), st.integers(0, 30))
def test_a_padded_line_has_exactly_its_width(text, width):
    assert cell_len(padded(steady(text), width)) == width


def test_no_sign_that_only_formats_is_left():
    seen_marks = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    kept = {*seen_marks, 0x200C, 0x200D, *range(0x13430, 0x13440)}
    formats = [at for at in range(0x110000) if unicodedata.category(chr(at)) == "Cf"]
    left = {at for at in formats if harmless(chr(at)) == chr(at)}
    assert left == kept & {*formats}


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])), st.integers(2, 20))
def test_a_folded_text_is_never_too_wide_and_loses_nothing(text, width):
    text = "".join(steady(text).split())
    lines = list(folded(text, width))
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == text


@pytest.mark.parametrize("sign", ["x", "日", "| x", "\u0301"])
def test_a_very_long_line_is_broken_in_a_time_that_grows_with_its_length(sign):
    text = sign * 200_000
    lines = list(folded(text, 40))
    assert "".join(lines) == text
    assert max(map(cell_len, lines)) <= 40
    assert cell_len(cut(text, 40)) <= 40
