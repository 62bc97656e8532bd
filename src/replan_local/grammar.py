"""Read a command: whole, or not at all. The rules of the language are in `grammar.lark`."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replan_local.commands import (
    CARDS,
    Calculate,
    Command,
    Compare,
    Figures,
    Query,
    Report,
    Search,
)
from replan_local.figures import FUNCTIONS, condition, key, measure, unquoted
from replan_local.refusals import CannotAnswerError, did_you_mean

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

LONGEST = 500
"""Characters of a command: a longer calculation could take hours."""

_WORD = re.compile(r"\s*(\"[^\"]*\"?|'[^']*'?|[\w.-]+|\S)")


def parse(text: str) -> Command:
    """Read a sentence.

    Raises:
        CannotAnswerError: It is not a command; the message says where it leaves the language.
    """
    text = text.strip().removesuffix(".")
    tree = tree_of(text, "command")
    if tree.data != "calculation":
        return meaning(tree, MEANINGS)
    steps = {int(str(figure.children[0])) for figure in tree.find_data("figure")}
    return Calculate(expression=text.split(maxsplit=1)[1], steps=tuple(sorted(steps)))


def tree_of(text: str, rule: str) -> "Tree[Token]":
    """Read all of a text by one of the rules."""
    if len(text) > LONGEST:
        message = f"The command has {len(text):,} characters; at most {LONGEST:,} are read."
        raise CannotAnswerError(message)
    parser: Any = _parser()
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415 - an optional extra

    try:
        return parser.parse(text, start=rule)
    except UnexpectedInput as error:
        raise _refusal(text, rule, error) from None


def meaning(part: Any, meanings: Mapping[str, Callable[..., Any]]) -> Any:
    """What a part of a tree means, from what its own parts mean; None where one is left out."""
    if part is None:
        return None
    if hasattr(part, "children"):
        return meanings[part.data](*(meaning(child, meanings) for child in part.children))
    return meanings.get(part.type, str.lower)(part)


def _made(kind: type[Any], *fields: str) -> Callable[..., Any]:
    """What makes a value of its parts; a part that is left out has its default."""

    def make(*parts: Any) -> Any:
        given = zip(fields, parts, strict=False)
        return kind.model_validate({name: part for name, part in given if part is not None})

    return make


MEANINGS: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(("A_COLUMN", "A_FILE", "A_TABLE", "A_TITLE_IN_QUOTES", "A_WORD"), unquoted),
    **dict.fromkeys(("measures", "keys", "conditions", "steps"), lambda *parts: parts),
    "A_VALUE": str,
    "A_WHOLE_NUMBER": int,
    "figures": _made(Figures, "measures", "by", "table", "where", "top"),
    "measure": measure,
    "key": key,
    "condition": condition,
    "operator": lambda *words: " ".join(words),
    "A_QUERY_IN_SQL": str,
    "query": _made(Query, "sql"),
    "comparison": _made(Compare, "steps", "by"),
    "search": _made(Search, "query", "file", "top"),
    "report": _made(Report, "title"),
}


@cache
def _parser() -> "Lark":
    try:
        from lark import Lark  # noqa: PLC0415 - an optional extra
    except ImportError:
        message = 'Reading commands needs Lark: pip install "replan[local]".'
        raise CannotAnswerError(message) from None
    rules = Path(__file__).with_suffix(".lark").read_text(encoding="utf-8")
    starts = ["command", "measures", "keys", "conditions", "expression"]
    return Lark(rules, parser="lalr", start=starts)


def _refusal(text: str, rule: str, error: Any) -> CannotAnswerError:
    """Say what is expected where the text leaves the language, and what is there instead."""
    is_over = hasattr(error, "token") and error.token.type == "$END"
    at = len(text) if is_over else error.pos_in_stream
    # Where the whole rule is read already, nothing is accepted any more.
    terminals = error.accepts if hasattr(error, "accepts") else error.allowed
    expected = _called(terminals or {"$END"})
    *most, last = expected
    either = f"{', '.join(most)} or {last}" if most else last
    before, found = text[:at].strip(), _WORD.match(text, at)
    where = f"after '{before}'" if before else "at the beginning"
    what = "an expression" if rule == "expression" else "a command"
    wrong = found[1] if found else ""
    return CannotAnswerError(
        f"'{text}' is not {what}: expected {either} {where}, not "
        f"{repr(wrong) if wrong else 'nothing'}.{did_you_mean(wrong, expected)}{_form_of(text)}"
    )


def _called(terminals: set[str]) -> list[str]:
    """What may come next, as people call it, in the order of the grammar."""
    called = [
        f"'{terminal.pattern.value}'"
        if terminal.pattern.type == "str"
        else terminal.name.strip("_").replace("_", " ").lower()
        for terminal in _parser().terminals
        if terminal.name in terminals
    ]
    return called + (["the end"] if "$END" in terminals else [])


def _form_of(text: str) -> str:
    """The form of the command that a text begins as; empty if it begins as none."""
    first = text.partition(" ")[0].casefold()
    first = "total" if first in FUNCTIONS else first
    forms = (form for card in CARDS for form in card.capabilities)
    form = next((form for form in forms if form.startswith(f"{first} ")), "")
    return f" The form is: {form}" if form else ""
