"""Mask secrets in texts that leave the process."""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from replan.base.secrets.known import KNOWN, MASK
from replan.base.secrets.shapes import KEYS, PRIVATE_KEY, is_certain, is_key, is_likely

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
_VARIABLE = r"\$(?-i:[A-Z_]{1,40}|\{[A-Z_]{1,40}\})(?![^\s,;\"'])"

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
            rf"(?:bearer|basic|token|apikey|digest)\s{{1,5}})(?!{_VARIABLE})[^\s,;\"']{{1,4000}}"
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
