"""Texts that leave the process: secrets of every form are masked, ordinary texts are not."""

import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cases import cases_of
from replan.base.secrets.masking import KNOWN, masked_beginning, without_secrets

CASES = cases_of(__file__)

# `@` stands for the secret.
FORMS = CASES["forms"]
SECRETS = CASES["secrets"]
PROSE = CASES["prose"]

_WORDS = [
    *("the", "a", "key", "keys", "token", "tokens", "secret", "password"),
    *("session", "code", "is", "was", "of", "for", "and", "or", "not"),
    *("provided", "invalid", "missing", "basic", "bearer", "authorization"),
    *("signature", "cookie", "credentials", "account", "service", "step"),
    *("result", "error", "line", "model", "limit", "API", "region", "customer"),
    *("OPENAI_API_KEY", "understanding", "internationalization", "5", "42"),
    *("2024", "3.5", "v2", "step_2", "Q3"),
]


def test_a_secret_is_masked_in_every_form():
    leaked: list[str] = []
    for form, secret in product(FORMS, SECRETS):
        # The one that begins with SK has no signs in it.
        hidden = secret.replace("-", "") if form == "SK@" else secret
        text = f"It said: {_filled(form, hidden)}"
        masked = without_secrets(text)
        if hidden in masked or "***" not in masked:
            leaked.append(text)

    assert leaked == []


def test_ordinary_texts_are_left_as_they_are():
    assert [without_secrets(text) for text in PROSE] == PROSE


def test_thousands_of_lines_of_documentation_have_nothing_to_mask():
    root = Path(__file__).parents[4]
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.md")]
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines()]

    assert len(lines) > 2_000
    assert [
        line for line in lines if "password=" not in line and without_secrets(line) != line
    ] == []


@given(
    words=st.lists(
        st.sampled_from(_WORDS),
        max_size=12,
    ),
    signs=st.lists(st.sampled_from([" ", " ", " ", ", ", ". ", ": "]), min_size=12, max_size=12),
)
def test_words_and_short_numbers_are_never_masked(words: list[str], signs: list[str]):
    # A name for a password with a sign after it is one, whatever follows.
    text = "".join(word + sign for word, sign in zip(words, signs, strict=False))
    text = text.replace("password: ", "password ").replace("credentials: ", "credentials ")

    assert without_secrets(text) == text


@given(
    st.lists(
        st.sampled_from([*"abc019 .:=\"'\\/@-_([{,;&?<>*\n", "password=", "token: ", "://", "key ",
                         "authorization: ", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----"]),
        max_size=60,
    ).map("".join)
)  # fmt: skip
def test_whatever_a_text_is_masking_it_twice_changes_nothing_more(text: str):
    masked = without_secrets(text)

    assert without_secrets(without_secrets(masked)) == without_secrets(masked)


@pytest.mark.parametrize(
    "piece",
    ["password=", "password='", "://a:", "key ", "sk-", "token: [", "-----BEGIN PRIVATE KEY-----",
     "authorization: a ", "a", "=", "cookie: a=", "secret_", "eyJaaaaaaaa.", "key=", "\\"],
)  # fmt: skip
def test_a_long_text_is_masked_soon(piece: str):
    text = piece * (30_000 // len(piece))
    started = time.process_time()
    without_secrets(text)

    assert time.process_time() - started < 1


def test_a_known_value_is_masked_wherever_it_stands_in_a_text_of_any_length():
    KNOWN.add(["plain as day"])

    assert without_secrets("x" * 100_000 + "plain as day") == "x" * 100_000 + "***"


def _filled(form: str, secret: str) -> str:
    """Put a secret into a form; the last `@` of an address stays."""
    if "@host" in form or "@h" in form:
        head, _, host = form.rpartition("@")
        return head[:-1] + secret + "@" + host
    return form.replace("@", secret)


@pytest.mark.parametrize("before", [0, 150, 195, 250, 25_190])
def test_the_beginning_of_a_long_text_is_cut_after_its_secrets_are_masked(before):
    key = "sk-abcdefghijklmnop1234567890"
    text = f"{'a ' * (before // 2)}{key}{' b' * 20_000}"
    shown = masked_beginning(text, 200)
    assert shown == f"{without_secrets(text)[:200]}..."
    assert "sk-a" not in shown
    assert masked_beginning("short", 200) == "short"
    assert masked_beginning(f"password={'k' * 300}", 200) == "password=***"
    # Only what can be shown is searched.
    assert len(masked_beginning("x" * 10_000_000, 200)) == 203
