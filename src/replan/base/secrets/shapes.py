"""How keys look, and whether a word looks like one rather than like a word of people."""

import re
from itertools import pairwise

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
