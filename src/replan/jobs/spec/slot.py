"""A slot: one piece of information of a job, and which values it takes."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from replan.base.declared.part import Part, Row, Surroundings, field_error, name_like
from replan.base.declared.references import import_object, stand_in
from replan.base.failures import describe
from replan.base.secrets.masking import MASK
from replan.base.texts.storable import storable_text
from replan.base.values import Value
from replan.jobs.sayings import LANGUAGES, Language, bare, joined, problem, say
from replan.jobs.spec.slot_values import OF_TYPE, SlotType

LONGEST_VALUE = 10_000
"""Characters of a value at most, where its slot says no less."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

ANY = "*"
"""The language of a text that a spec gives without a language."""


class ValidationIssue(Value):
    """What is wrong with a value of a job (`ValidationError` of the design that jobs come from).

    Attributes:
        field: The slot.
        message: What is wrong, in the language of the job.
        code: A stable machine-readable name of the kind of mistake.
        value: The value as text, shortened; empty for a secret slot.
    """

    field: str
    message: str
    code: str
    value: str = ""


def texts(value: object) -> object:
    """Take one text, or a text for each language."""
    if isinstance(value, str):
        value = {ANY: value}
    if not isinstance(value, Mapping):
        fix = "Write a text, or one for each language: {en: ..., zh: ...}."
        raise field_error("wrong_type", "This is not text.", fix)
    for language, text in cast("Mapping[Any, Any]", value).items():
        if language not in (*LANGUAGES, ANY):
            fix = f"The languages are: {', '.join(LANGUAGES)}."
            raise field_error("unknown_language", f"There is no language '{language}'.", fix)
        if not isinstance(text, str) or not text.strip():
            raise field_error("empty", f"The text for '{language}' is empty.", "Write a text.")
    return cast("object", value)


def _choices(value: object) -> object:
    """Take a list of choices, or a mapping of choices to other words for them."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = dict.fromkeys(cast("Sequence[Any]", value), ())
    if not isinstance(value, Mapping) or not all(
        isinstance(word, str) and isinstance(also, list | tuple | None)
        for word, also in cast("Mapping[Any, Any]", value).items()
    ):
        fix = "Write a list of texts, or a mapping of each to other words for it."
        raise field_error("wrong_type", "These are not choices.", fix)
    found = cast("Mapping[str, Any]", value)
    return {word: tuple(map(str, also or ())) for word, also in found.items()}


def _pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        fix = "Write a regular expression of Python."
        raise field_error("bad_pattern", f"This is not a pattern: {error}.", fix) from error
    return pattern


def function(value: object, info: ValidationInfo) -> object:
    """Take a function, or in a file the name of one."""
    around = cast("Surroundings | None", info.context)
    if around is not None:
        if not isinstance(value, str):
            raise field_error("wrong_type", "This must be text.", "Write module:function.")
        value = (import_object if around.imports else stand_in)(value, around.folder)
    if not callable(value):
        reason = f"It is of type {type(value).__name__}, and cannot be called."
        raise field_error("no_function", reason, "Give a function.")
    return cast("object", value)


SlotName = Annotated[
    str,
    AfterValidator(
        name_like(
            r"[a-z][a-z0-9_]{0,63}",
            "This cannot be the name of a slot or a command.",
            "Use small letters, digits and '_', beginning with a letter.",
            reserved=lambda: ("command", "confirmation", "item"),
        )
    ),
]
"""The name of a slot or a command."""

# A type checker sees what Python gives.
if TYPE_CHECKING:
    Texts = Mapping[str, str] | str
    Choices = Mapping[str, Sequence[str]] | Sequence[str]
    Function = Callable[..., Any]
else:
    _WORDS = {"type": "array", "items": {"type": "string"}}
    _BY_LANGUAGE = {
        "type": "object",
        "properties": {language: {"type": "string", "minLength": 1} for language in LANGUAGES},
        "additionalProperties": False,
    }
    _OTHER_WORDS = {"type": "object", "additionalProperties": {"anyOf": [_WORDS, {"type": "null"}]}}
    Texts = Annotated[
        Mapping[str, str],
        BeforeValidator(texts),
        WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _BY_LANGUAGE]}),
    ]
    Choices = Annotated[
        Mapping[str, Sequence[str]],
        BeforeValidator(_choices),
        WithJsonSchema({"anyOf": [_WORDS, _OTHER_WORDS]}),
    ]
    Function = Annotated[Any, PlainValidator(function), WithJsonSchema({"type": "string"})]


def text_in(texts_by_language: Texts, language: Language) -> str:
    """A text in a language; empty if there is none."""
    found = cast("Mapping[str, str]", texts_by_language)
    return found.get(language) or found.get(ANY, "")


class Slot(Part):
    """One piece of information that a job collects.

    Attributes:
        name: Small letters, digits and _, beginning with a letter.
        question: The question for it: a text, or one for each language of the job.
        type: text, integer, number, boolean, date, list or object.
        label: Its name for the user: a text, or one for each language.
        words: Other names under which a user may give it, as in 'name: value'.
        choices: The allowed values: a list, or a mapping of each value to other words for it.
        pattern: A regular expression that a text must match as a whole.
        minimum: The smallest number.
        maximum: The largest number.
        longest: The maximum number of characters of a text.
        check: A function, not async, of the value, or of the value and the values of depends_on. It
            returns None or True if the value fits, else False or a text that says what is wrong. In
            a file module:function.
        depends_on: The slots on which its value depends: it is asked for after them, and asked for
            again if one of them changes.
        secret: Whether its value must not be shown.
    """

    name: SlotName = Field(kw_only=False)
    question: Texts
    type: SlotType = "text"
    label: Texts = Field(default_factory=dict[str, str])
    words: Row[str] = ()
    choices: Choices = Field(default_factory=dict[str, Sequence[str]])
    pattern: Annotated[str, AfterValidator(_pattern)] | None = None
    minimum: float | None = None
    maximum: float | None = None
    longest: int = Field(default=1_000, ge=1, le=LONGEST_VALUE)
    check: Function | None = None
    depends_on: Row[str] = ()
    secret: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it takes any text, a list or fields."""
        return self.type in ("text", "list", "object") and not self.choices and not self.pattern

    def called(self, language: Language) -> str:
        """Its name for the user."""
        return text_in(self.label, language) or self.name.replace("_", " ")

    def shown(self, value: JsonValue, language: Language) -> str:
        """Write a value for the user."""
        if self.secret:
            return MASK
        if isinstance(value, bool):
            return say("yes" if value else "no", language)
        if isinstance(value, list):
            return joined((self.worded(str(item), language) for item in value), language)
        if isinstance(value, dict):
            return joined((f"{name}: {part}" for name, part in value.items()), language)
        return self.worded(str(value), language)

    def worded(self, value: str, language: Language) -> str:
        """A choice as its language has it, if one of its other words is of that language."""
        words = cast("Mapping[str, Sequence[str]]", self.choices).get(value, ())
        if language == "zh" and value.isascii():
            return next((word for word in words if not word.isascii()), value)
        return value

    def normal(self, value: object) -> JsonValue:
        """Return a value in the canonical form of the slot.

        Raises:
            ValueError: It is of another type or no choice; the argument is the code of the problem.
        """
        if isinstance(value, str):
            value = value.strip()
        made = OF_TYPE[self.type](value)
        if self.choices and isinstance(made, str):
            made = self._choice(made)
        elif self.choices and isinstance(made, list):
            chosen = [self._choice(str(value_made)) for value_made in made]
            kept: list[JsonValue] = [*dict.fromkeys(map(str, chosen))]
            made = None if None in chosen else kept
        if made is None:
            raise ValueError("not_a_choice" if self.choices else f"wrong_type_{self.type}")
        return made

    def issue(
        self, value: JsonValue, others: Mapping[str, JsonValue], language: Language
    ) -> ValidationIssue | None:
        """What is wrong with a value in its form; None if it fits.

        The check is left out until the slots are known on which the value depends.
        """
        found = self._bound_broken(value)
        if found is not None:
            return self.issue_of(found[0], value, language, bound=found[1])
        if self.check is None or any(name not in others for name in self.depends_on):
            return None
        known = {name: others[name] for name in self.depends_on}
        try:
            verdict = self._checked(value, known)
        except Exception as error:  # noqa: BLE001 - foreign code
            return self.issue_of("check_broken", value, language, problem=describe(error))
        if verdict is None or verdict is True:
            return None
        issue = self.issue_of("check_failed", value, language)
        if not isinstance(verdict, str) or not verdict:
            return issue
        message = storable_text(verdict)
        return issue.replace(message=message.replace(str(value), MASK) if self.secret else message)

    def issue_of(
        self, code: str, value: object, language: Language, **facts: object
    ) -> ValidationIssue:
        """Return what is wrong with a value."""
        known = cast("Mapping[str, Any]", self.choices)
        choices = joined((self.worded(each, language) for each in known), language)
        message = problem(code, language, choices=choices, **facts)
        is_form = isinstance(value, dict)
        shown = self.shown(cast("JsonValue", value), language) if is_form else str(value)
        kept = "" if self.secret else storable_text(shown)[:60]
        return ValidationIssue(field=self.name, message=message, code=code, value=kept)

    def _choice(self, text: str) -> str | None:
        wanted = bare(text)
        found = cast("Mapping[str, Sequence[str]]", self.choices)
        for choice, words in found.items():
            if wanted in {bare(word) for word in (choice, *words)}:
                return choice
        return None

    def _checked(self, value: JsonValue, others: Mapping[str, JsonValue]) -> object:
        check = cast("Callable[..., object]", self.check)
        wanted = [
            parameter
            for parameter in inspect.signature(check).parameters.values()
            if parameter.kind in _POSITIONAL and parameter.default is inspect.Parameter.empty
        ]
        return check(value, dict(others)) if len(wanted) > 1 else check(value)

    def _bound_broken(self, value: JsonValue) -> tuple[str, object] | None:
        if (isinstance(value, str) and not value) or value in ([], {}):
            return "empty", None
        if isinstance(value, str) and len(value) > self.longest:
            return "too_long", self.longest
        if isinstance(value, str) and self.pattern and not re.fullmatch(self.pattern, value):
            return "wrong_pattern", None
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.minimum is not None and value < self.minimum:
                return "too_small", f"{self.minimum:g}"
            if self.maximum is not None and value > self.maximum:
                return "too_large", f"{self.maximum:g}"
        return None


# A pattern that takes any of the words, or all of the numbers, says nothing about a text.
_WORDS = (
    "a",
    "Anna",
    "tomorrow",
    "Stockholm",
    "hello there",
    "\u597d\u7684",
    "\u5317\u4eac\u5e02\u671d\u9633\u533a",
)
_NUMBERS = ("3", "42", "365")


@cache
def form_of(pattern: str | None) -> re.Pattern[str] | None:
    """What finds values of a pattern in a text, as words of their own; None if it tells nothing."""
    if pattern is None:
        return None
    bare = _without_anchors(pattern)
    takes = re.compile(bare).fullmatch
    if any(map(takes, _WORDS)) or all(map(takes, _NUMBERS)):
        return None
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{bare})(?![A-Za-z0-9_])")


def _without_anchors(pattern: str) -> str:
    while pattern.startswith(("^", r"\A")):
        pattern = pattern.removeprefix("^").removeprefix(r"\A")
    while pattern.endswith((r"\Z", "$")) and not pattern.endswith(r"\$"):
        pattern = pattern.removesuffix("$").removesuffix(r"\Z")
    return pattern


def without_forms(patterns: Iterable[str | None], text: str, mask: str) -> str:
    """A text with a mask in place of everything that has the form of a pattern."""
    for form in map(form_of, patterns):
        text = text if form is None else form.sub(mask, text)
    return text
