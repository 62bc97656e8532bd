"""Ordinary texts of each kind, and what a hostile hand makes of them."""

import json
import random
from collections.abc import Callable
from itertools import count

_TOPICS = ("revenue by region", "refunds of last year", "the notes on returns", "large orders")
_PIECES = (
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "\x00",
        "\ufeff",
        "\u200b",
        "\u202e",
        "\u3000",
        "\ud800",
        "和",
        "\U0001d7d7",
    ),
    *("- ", "- [ ] ", "- [x] 1. ", "1. ", "# ", "> ", "```\n", "~~~", "---\n", "<!-- ", "-->"),
    *("@a ", "@nobody ", "(", ")", "(after ", "after 1, ", "after 1-900 ", "(retries 9)", "(if 2 "),
    *("[", "]", "{", "}", "[1,", '{"a":', "&a ", "*a, ", "<<: *a\n", "!!python/object:os.system "),
    *("key: ", "a: b\n", "'", '"', "\\", "|", "|-", "`", "**", "__", "~~", "](", "<think>", "&#6"),
    *(
        "</think>",
        "verdict: complete\n",
        "complexity: ",
        "score: 0.9\n",
        "null",
        "9e9",
    ),
    *("9" * 30, "1" * 400, "module:function", "../../etc/passwd", "${HOME}", "sk-aaaaaaaaaaaaaaaa"),
)
_SIZES = (60, 300, 1_000, 3_000, 10_000)
_LARGE = (120_000, 200_000)
_ONE_IN = 100
"""Of so many texts, one is large."""


def _plan(size: int) -> str:
    lines, length = ["# Regions in trouble\n\nThe board meets on Monday.\n"], 0
    for number in count(1):
        waits = f" (after {number - 1})" if number > 1 else ""
        topic = _TOPICS[number % len(_TOPICS)]
        lines.append(f"- [ ] {number}. Total {topic} and say what changed @a{waits}\n")
        if number % 3 == 0:
            lines.append(f"\n  The brief of it, in a sentence or two, about {topic}.\n\n")
        length += len(lines[-1])
        if length >= size:
            return "".join(lines)
    raise AssertionError("unreachable")


def _prose(size: int) -> str:
    sentence = "The revenue of the north grew by 4 %, and nobody knows why it did. "
    paragraph = f"{sentence * 3}\n\n- first, {sentence}\n- then, {sentence}\n\n"
    return (paragraph * (size // len(paragraph) + 1))[:size]


def _thought(size: int) -> str:
    head = "---\ncomplexity: complex\nreasoning: It has parts.\n---\n"
    return head + _plan(size)


def _judgement(size: int) -> str:
    return "---\nverdict: continue\n---\n" + _plan(size)


def _answer(size: int) -> str:
    return "---\nstatus: success\nconfidence: 0.9\n---\n" + _prose(size)


def _team(size: int) -> str:
    head = "name: office\nhost:\n  model: offline\nspecialists:\n"
    one = (
        "  - name: member_{0}\n    intended_use: Looks into {1}.\n    chat_model: offline\n"
        "    capabilities: [reading, sums]\n    limits:\n      max_model_calls: 5\n"
    )
    members = (one.format(at, _TOPICS[at % 4]) for at in range(max(1, size // 150)))
    return head + "".join(members)


def _note(size: int) -> str:
    parts = (
        f"## {topic}\n\n{_prose(400)}\n\n" for _ in range(size // 1_600 + 1) for topic in _TOPICS
    )
    return "".join(parts)[: max(size, 20)]


def _row(size: int) -> str:
    message = {"type": "ai", "content": _prose(size), "id": "m"}
    row = {"specialist_name": "a", "step_id": 1, "status": "success", "result": message}
    return json.dumps({**row, "round": 1, "artifacts": [], "confidence": 1.0})


KINDS: dict[str, Callable[[int], str]] = {
    "plan": _plan,
    "thought": _thought,
    "judgement": _judgement,
    "answer": _answer,
    "team": _team,
    "note": _note,
    "row": _row,
}


def ordinary(kind: str, size: int) -> str:
    """An ordinary text of a kind, of about this size."""
    return KINDS[kind](size)


def hostile(kind: str, chance: random.Random, most: int = max(_LARGE)) -> str:
    """A text of a kind, as a hostile hand leaves it; about so large at most."""
    size = min(most, chance.choice(_LARGE if chance.randrange(_ONE_IN) == 0 else _SIZES))
    text = ordinary(kind, size)
    for _ in range(chance.randint(1, 6)):
        text = chance.choice(_CHANGES)(text, size, chance)
    return text[: 2 * size]


def _repeated(text: str, size: int, chance: random.Random) -> str:
    """A piece or two, repeated to the size of the text."""
    pump = "".join(chance.choices(_PIECES, k=chance.randint(1, 3)))
    return _put(text, pump * (chance.choice((3, 40, size)) // len(pump) + 1), size, chance)


def _repeated_part(text: str, size: int, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    part = text[at : at + chance.choice((1, 5, 30, 200))]
    return _put(text, part * (chance.choice((2, 50, size)) // max(1, len(part)) + 1), size, chance)


def _nested(text: str, size: int, chance: random.Random) -> str:
    sign, end = chance.choice(("[]", "{}", "()", "<>", "* ", "> ", "\t-"))
    depth = chance.choice((5, 120, size // 2))
    return _put(text, sign * depth + end * depth, size, chance)


def _inserted(text: str, size: int, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 8)):
        text = _put(text, chance.choice(_PIECES), 2 * size, chance)
    return text


def _cut(text: str, size: int, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 10, size // 3)) :]


def _without_line_ends(text: str, _: int, chance: random.Random) -> str:
    return text.replace("\n", chance.choice((" ", "\r", "\u2028", "")))


def _swapped(text: str, _: int, chance: random.Random) -> str:
    lines = text.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def _renumbered(text: str, _: int, chance: random.Random) -> str:
    return text.replace(str(chance.randint(0, 9)), chance.choice(("1", "0", "-1", "9" * 40, "①")))


def _put(text: str, piece: str, size: int, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return (text[:at] + piece + text[at:])[: 2 * size]


_CHANGES = (
    *(_repeated, _repeated, _repeated_part, _nested, _inserted),
    *(_cut, _without_line_ends, _swapped, _renumbered),
)
