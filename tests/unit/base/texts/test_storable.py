"""What every store keeps, told and made."""

import pytest
from hypothesis import given, strategies as st

from replan.base.texts.storable import storable, storable_text, unstorable

TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\0\ud800\ude00"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_what_is_made_storable_is_kept_and_what_is_kept_stays(value):
    made = storable(value)
    assert not unstorable(made)
    if not unstorable(value):
        assert made is value


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\0b", "ab"), ("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "\U0001f600"), ("é", "é")],
)
def test_a_text_loses_nul_and_halves_that_cannot_be_joined(text, kept):
    assert storable_text(text) == kept


@pytest.mark.parametrize(
    ("number", "is_kept"), [(2**63 - 1, True), (2**63, False), (-(2**63), False)]
)
def test_a_number_above_64_bits_becomes_a_text(number, is_kept):
    assert bool(unstorable([number])) is not is_kept
    assert storable([number]) == [number if is_kept else str(number)]


def test_a_number_of_thousands_of_digits_and_a_deep_list_end_no_reader():
    deep = [1]
    for _ in range(5000):
        deep = [deep]
    assert "64 bits" in unstorable(10**9000)
    assert storable(10**9000).startswith("0x")
    assert "100 levels" in unstorable(deep)
    assert not unstorable(storable(deep))
