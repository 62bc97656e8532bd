"""Texts that leave the process: secrets of every form are masked, ordinary texts are not."""

import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from replan.secrets.known import KNOWN
from replan.secrets.masking import masked_beginning, without_secrets

# `@` stands for the secret.
FORMS = [
    "Incorrect API key provided: sk-@",
    "Incorrect API key provided: sk-proj-@",
    "Authorization: Bearer @",
    "Authorization: Basic @",
    "Authorization: Bearer $TOKEN@",
    "Authorization: Token @",
    "authorization: ApiKey @",
    "x-api-key: @",
    "{'x-api-key': '@', 'a': 1}",
    "[(b'authorization', b'Bearer @')]",
    "[('api-key', '@')]",
    "Ocp-Apim-Subscription-Key: @",
    "postgresql://user:@@host/db",
    "host=h user=u password=@",
    "postgresql://h/db?sslpassword=@",
    "password authentication failed with password @",
    '{"api_key": "@"}',
    '{"access_token":"@","x":1}',
    '{"client_secret":"@"}',
    '{"private_key":"@"}',
    '{\\"api_key\\": \\"@\\"}',
    "aws_secret_access_key=@",
    "AWS_SECRET_ACCESS_KEY: @",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@==;",
    "https://x.blob.example/c?sv=2020&sig=@",
    "SharedAccessKey=@",
    "https://b.s3.example/x?X-Amz-Signature=@",
    "Set-Cookie: session=@",
    "Cookie: sid=@; other=@",
    *(f"{lead}@" for lead in ("ghp_", "github_pat_", "glpat-", "xoxb-", "hf_", "gsk_", "xai-")),
    *(f"{lead}@" for lead in ("r8_", "lsv2_pt_", "npm_", "pypi-", "sk_live_", "sk-ant-api03-")),
    "AIza@xxxxx",
    "SG.@.@",
    "SK@",
    "https://api.telegram.org/bot123456:@/sendMessage",
    "https://discord.com/api/webhooks/1/@",
    "https://hooks.slack.com/services/T0/B0/@",
    "eyJhbGciOiJIUzI1NiJ9.eyJ@.sig",
    "GET https://api.example/v1?key=@",
    "https://api.example/v1?apikey=@",
    "https://api.example?appid=@",
    "https://@@host/x",
    "passphrase=@",
    "PWD=@",
    "-----BEGIN RSA PRIVATE KEY-----\n@\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\n@",
    'password="@ tail@"',
    "Password : @",
    "the secret is @",
    "API key @ is invalid",
    "Invalid key '@'",
    "credentials=('user', '@')",
    "password=b'@'",
    "postgresql://user:pa@@@host/db",
    "postgresql://user:pa/ss@@host/db",
    "redis://:@@h:1/0",
    "amqp://u:@@h",
    "mongodb+srv://u:@@h",
]
SECRETS = [
    "Zq7deadbeef0123456789abcdef",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7",
    "x4f7k2m9-q1w8e5r2t6-abc123def456",
]
PROSE = [
    "This model's maximum context length is 4096 tokens: you asked for 5000.",
    "The limit max_tokens=100 is reached.",
    "See https://host.example/v1/chat or mail me@example.org.",
    "A basic understanding of task-oriented, risk-free work.",
    'curl -H "Authorization: Bearer $TOKEN" -H "Authorization: Basic ${LOGIN}" localhost',
    "Basic authentication is required; bearer tokens are preferred.",
    "The key is missing: OPENAI_API_KEY is not set. Set OPENAI_API_KEY.",
    "Name that one: api_key_env: OPENAI_API_KEY.",
    "Expecting ',' delimiter: line 1 column 5. Unexpected token: '}'",
    "KeyError: 'customer_2024_region'",
    "The password: it must have eight characters.",
    "A secret: be kind. The token: a coin. The key: look at both.",
    "commit 3f2a9c1b7d4e5f60718293a4b5c6d7e8f9012345 is not in the repository",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "run 550e8400-e29b-41d4-a716-446655440000 is over",
    "violates the primary key constraint pk_customer_orders",
    "Cookies: how many? A signature: none. Codes: 404, 500.",
    "http://127.0.0.1:8000/v1/models@latest",
    "Write postgresql://user@host/database, or git@github.example and ssh://git@host/x.git.",
    "The authorization: who may do it is decided by a person.",
    "invalid key: models.default.max_retries",
    "/srv/data/sales_2024.csv: no such file",
    "max_completion_tokens: 16384; token: 12",
    "pip install replan[tools] npm_config_registry hf_hub_download sk-learn",
]

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
    root = Path(__file__).parents[3]
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.md")]
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines()]

    assert len(lines) > 2_000
    assert [
        line for line in lines if "password=" not in line and without_secrets(line) != line
    ] == []


def test_hashes_and_names_in_results_of_tools_are_readable():
    text = "HEAD is now at 3f2a9c1 fix; 3f2a9c1b7d4e5f60718293a4b5c6d7e8f9012345 (tag v1.2.3)"

    assert without_secrets(text) == text


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
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    without_secrets(text)

    assert time.process_time() - started < 10


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
    text = f"{'a ' * (before // 2)}{key}{' b' * 100_000}"
    shown = masked_beginning(text, 200)
    assert shown == f"{without_secrets(text)[:200]}..."
    assert "sk-a" not in shown
    assert masked_beginning("short", 200) == "short"
    assert masked_beginning(f"password={'k' * 300}", 200) == "password=***"
    # Only what can be shown is searched.
    assert len(masked_beginning("x" * 10_000_000, 200)) == 203
