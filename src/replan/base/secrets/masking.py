"""Mask secrets in texts that leave the process: known values, and what looks like a key.

Known values are collected once, where they are handed in (`sources.py`), so that masking a text
looks at nothing but the text.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote

MASK = "***"
SHORTEST = 8  # characters of a value that is masked; a shorter one may be part of any word
MOST = 1_000  # the most values that are kept; the oldest are dropped

_PLACEHOLDERS = frozenset({"not-needed"})


class KnownSecrets:
    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self.forms: tuple[str, ...] = ()  # how they look in other texts

    def add(self, values: Iterable[str]) -> None:
        """Remember values, except those too short to distinguish from words."""
        stripped = (value.strip() for value in values)
        new = {
            value: None
            for value in stripped
            if len(value) >= SHORTEST and value not in _PLACEHOLDERS
        }
        if new.keys() <= self._values.keys():
            return
        # Other threads mask meanwhile: what they read is replaced, never changed.
        kept = [*(value for value in self._values if value not in new), *new][-MOST:]
        self._values = dict.fromkeys(kept)
        forms = {form for value in kept for form in _forms(value)}
        self.forms = tuple(sorted(forms, key=len, reverse=True))

    def clear(self) -> None:
        self._values, self.forms = {}, ()

    def masked(self, text: str) -> str:
        for form in self.forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def occur_in(self, text: str) -> bool:
        return any(form in text for form in self.forms)


KNOWN = KnownSecrets()  # what this process knows


def _forms(value: str) -> set[str]:
    return {value, quote(value, safe=""), json.dumps(value)[1:-1], repr(value)[1:-1]}


_RUN = re.compile(r"[A-Za-z0-9]+")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_MIXED = 7
_LONGEST_WORD = 32
_CERTAIN = 12
_SURELY = 40

KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|rk|pk|gsk|xai|hf|r8|gh[opusr]|github_pat|glpat|xox[a-z]|xapp|lsv2|npm|pypi|dop_v1"
    r"|shpat|nvapi|tvly|pplx|figd)[-_][\w*-]{6,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|AIza[\w-]{20,}"
    r"|ya29\.[\w-]{10,}"
    r"|SG\.[\w-]{10,}\.[\w-]{10,}"
    r"|SK(?=[A-Za-z0-9]{0,100}\d)[A-Za-z0-9]{24,}"
    r"|eyJ[\w-]{8,}(?:\.[\w-]+){0,4}"
    r")"
)
"""Keys with a prefix that names their service."""

_BEARER = re.compile(r"(?i)\bbearer\s{1,10}(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{16,}")
_CREDENTIALS = re.compile(r"://[^\s/@:]{1,200}:[^\s/@]{1,200}@")
_WHOLE = 20

PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:.{0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----|[^-]*)",
    re.DOTALL,
)
"""A private key as a text, also one whose end was cut off."""


def is_likely(word: str) -> bool:
    if _VARIABLE.fullmatch(word):
        return False
    runs = _RUN.findall(word)
    has_letter, has_digit = any(map(str.isalpha, word)), any(map(str.isdigit, word))
    if len(word) >= _MIXED and has_letter and (has_digit or _is_mixed(word)):
        return True
    return any(len(run) > _LONGEST_WORD for run in runs)


def is_certain(word: str) -> bool:
    """Whether a word looks like a secret in any place: long, of letters and digits."""
    return any(
        len(run) >= _CERTAIN and not run.isdigit() and any(map(str.isdigit, run))
        for run in _RUN.findall(word)
    ) or any(len(run) >= _SURELY for run in _RUN.findall(word))


def holds_key(text: str) -> bool:
    keys = (found[0] for found in KEYS.finditer(text))
    return any(len(key) >= _WHOLE and any(map(str.isdigit, key)) for key in keys) or any(
        pattern.search(text) for pattern in (_BEARER, _CREDENTIALS, PRIVATE_KEY)
    )


def is_key(match: re.Match[str]) -> bool:
    """Whether what begins like a key continues like one, and not like words of people."""
    text = match[0]
    if "-" not in text[:12] and "_" not in text[:12]:
        return True
    rest = re.split(r"[-_]", text, maxsplit=1)[1]
    is_starred = "**" in rest
    is_long = any(len(run) >= _CERTAIN for run in _RUN.findall(rest))
    return is_starred or is_long or any(map(str.isdigit, rest))


def _is_mixed(word: str) -> bool:
    """Whether capitals and small letters change more often than in names of classes."""
    letters = [character for character in word if character.isalpha()]
    changes = sum(1 for a, b in pairwise(letters) if a.islower() != b.islower())
    return 3 * changes >= len(letters)


_PIECE = 8_000
"""Characters that are searched at once, because patterns take longer for longer texts."""

_LONGEST_SECRET = 25_000
"""Characters after which a secret that begins before them ends: a private key with its frame."""

_QUOTE = r"\\{0,4}[\"'`]"
_IS = r"\s{0,5}(?:=>|[=:])\s{0,5}"
_QUOTED = r"b?(?:\\{0,4}\"[^\"]{0,2000}\"|\\{0,4}'[^']{0,2000}')"
_BARE = r"[^\s&;\"'<>]{1,2000}"
_GROUP = r"[(\[{][^)\]}]{0,500}[)\]}]?"
_NAME = (
    r"(?:(?:api|access|account|private|secret|subscription|encryption|signing|master|auth|storage"
    r"|service|session|shared)[_ -]?key|secret|passw(?:or)?d|pwd|passphrase|credentials?|token)"
)
_WEAK = r"(?:sig|signature|appid|app_id|session|sid|code|key|auth|hmac|x-amz-[a-z-]{1,40})"
_WORD = r"[\w.~+/=*$!@#%^-]{6,2000}"
# What a shell fills in is the name of a secret, and none itself.
_REFERENCE = r"\$(?-i:[A-Z_]{1,40}|\{[A-Z_]{1,40}\})(?![^\s,;\"'])"

# A line that continues in words mentions a password, and does not contain it.
_PROSE = re.compile(r"[A-Za-z]{1,14}[.,;!?]?\s+[a-z]|(?:required|missing|invalid|empty)\b")
_PASSWORD = re.compile(r"(?i)passw|pwd|passphrase|credential")
_LETTERS = re.compile(r"\w{4}")
_SMALL_NUMBER = re.compile(r"[\d.,_]{1,8}")
_OPENING = re.compile(r"b?\\{0,4}[\"'`(\[{]")


def _if_likely(match: re.Match[str]) -> bool:
    return is_likely(match["value"])


def _if_assigned(match: re.Match[str]) -> bool:
    """Whether what is after a name for a secret and a sign is one, and no remark about it."""
    lead, value = match["lead"], match["value"]
    opening = _OPENING.match(value)
    bare = value[opening.end() :].rstrip("\\\"'`") if opening else value
    is_password = _PASSWORD.match(lead) is not None
    is_name = is_password or "_" in lead or "-" in lead
    if lead.rstrip().endswith("=") or opening:
        is_trifle = not _LETTERS.search(value) or _SMALL_NUMBER.fullmatch(bare)
        return is_password or not is_trifle
    if is_likely(bare):
        return True
    return is_name and _PROSE.match(match.string, match.start("value")) is None


@dataclass(frozen=True)
class _Form:
    """A form in which secrets are in texts: what leads to the value, and whether it is one."""

    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] = lambda _: True

    def masked(self, text: str) -> str:
        return self.pattern.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        if not self.is_secret(match):
            return match[0]
        return match.groupdict().get("lead", "") + MASK


_FORMS = (
    # A user name goes with its password; alone in an address, it may be a token.
    _Form(
        re.compile(r"(?<=://)(?P<value>[^\s/?#\"'<>]{1,300})(?=@)"),
        lambda found: ":" in found["value"] or _if_likely(found),
    ),
    # A password may have a slash in it; what begins with a number and a slash is a port.
    _Form(re.compile(r"(?<=://)[^\s/@:?#]{0,100}:(?!\d{1,5}(?:/|\b))[^\s\"'<>]{1,300}(?=@)")),
    _Form(re.compile(r"(?i)(?<=/bot)\d{3,20}:[\w-]{10,}")),
    _Form(re.compile(r"(?i)(?P<lead>/api/webhooks/\d{1,30}/)[\w-]+")),
    _Form(re.compile(r"(?i)(?<=hooks\.slack\.com/)[\w/-]+")),
    _Form(
        re.compile(
            r"(?i)(?P<lead>\bcookie2?[\"']?\s{0,5}[:=,]\s{0,5}b?[\"']?)"
            r"[\w.-]{1,100}=[^\r\n\"']{1,4000}"
        )
    ),
    _Form(
        re.compile(
            r"(?i)(?P<lead>\bauthorization[\"']?\s{0,5}[=:,]\s{0,5}b?[\"']?"
            r"(?:[a-z][\w-]{0,30}\s{1,5})?)(?P<value>[^\s,;\"']{1,4000})"
        ),
        _if_likely,
    ),
    _Form(
        re.compile(
            r"(?i)(?P<lead>\bauthorization[\"']?\s{0,5}[=:,]\s{0,5}b?[\"']?"
            rf"(?:bearer|basic|token|apikey|digest)\s{{1,5}})(?!{_REFERENCE})[^\s,;\"']{{1,4000}}"
        )
    ),
    _Form(re.compile(r"(?i)(?P<lead>[\"']authorization[\"']\s{0,5}[:,]\s{0,5}b?[\"'])[^\"']+")),
    _Form(re.compile(rf"(?i)(?P<lead>\b(?:bearer|basic)\s{{1,5}})(?P<value>{_WORD})"), _if_likely),
    _Form(
        re.compile(
            rf"(?i)(?P<lead>{_NAME}\d{{0,3}}(?:{_QUOTE})?{_IS})"
            rf"(?P<value>{_QUOTED}|{_GROUP}|b?(?:{_QUOTE})?{_BARE})"
        ),
        _if_assigned,
    ),
    _Form(re.compile(rf"(?i)(?P<lead>{_NAME}{_QUOTE}\s{{0,5}},\s{{0,5}}){_QUOTED}")),
    # Servers like to repeat what they refuse: "Incorrect API key provided: ...".
    _Form(
        re.compile(
            rf"(?i)(?P<lead>{_NAME}(?:\s{{1,5}}(?:is|was|value|provided|given|used)){{0,2}}"
            rf"(?:\s{{0,5}}:)?\s{{1,5}}(?:{_QUOTE})?)(?P<value>{_WORD})"
        ),
        _if_likely,
    ),
    _Form(
        re.compile(
            rf"(?i)(?P<lead>(?<!public )(?<!primary )(?<!foreign )(?<!idempotency )\bkey"
            rf"(?:\s{{1,5}}[a-z]{{1,20}}){{0,2}}(?:\s{{0,5}}:)?\s{{1,5}}(?:{_QUOTE})?)"
            rf"(?P<value>{_WORD})"
        ),
        lambda found: is_certain(found["value"]),
    ),
    _Form(
        re.compile(rf"(?i)(?P<lead>\b{_WEAK}(?:{_QUOTE})?{_IS}(?:{_QUOTE})?)(?P<value>{_WORD})"),
        _if_likely,
    ),
    _Form(KEYS, is_key),
)


def without_secrets(text: str) -> str:
    """Replace known secret values, and what looks like one, by `***`."""
    if not text:
        return text
    text = PRIVATE_KEY.sub(MASK, KNOWN.masked(text))
    if len(text) <= _PIECE:
        return _without_forms(text)
    return "".join(map(_without_forms, _pieces(text)))


def masked_beginning(text: str, most: int) -> str:
    """The first characters of a text, without secrets; only as much as can matter is searched."""
    searched = text[: most + _LONGEST_SECRET]
    masked = without_secrets(searched)
    is_whole = len(searched) == len(text) and len(masked) <= most
    return masked if is_whole else f"{masked[:most]}..."


def _without_forms(text: str) -> str:
    for form in _FORMS:
        text = form.masked(text)
    return text


def _pieces(text: str) -> Iterator[str]:
    """Divide a long text, where it has lines between them."""
    piece = ""
    for line in text.splitlines(keepends=True):
        if piece and len(piece) + len(line) > _PIECE:
            yield piece
            piece = ""
        piece += line
    yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))


_WRITER = logging.Formatter()


def with_masked_traceback(record: logging.LogRecord) -> bool:
    """Write the traceback of a record without secrets: a filter that lets every record through."""
    if record.exc_info and not record.exc_text:
        record.exc_text = without_secrets(_WRITER.formatException(record.exc_info))
    return True
