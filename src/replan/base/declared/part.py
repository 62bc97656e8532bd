"""What all declared parts have in common: their fields, and mistakes that are reported together."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    LiteralString,
    Self,
    TypeVar,
    cast,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from replan.base.values import Value

Where = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""

Effects = Literal["pure", "keyed", "unsafe"]
"""What a second run of the same work does to the outside.

- `pure`: nothing, it may run again whenever that is of use;
- `keyed`: nothing, because it hands an idempotency key on;
- `unsafe`: its effect again, so it is never silently run again.
"""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is around a file."""

    folder: Path  # the folder of the file; prompts and modules may be there
    imports: bool = True  # whether what the file names is imported, which runs its code


def field_error(code: LiteralString, reason: str, fix: str) -> PydanticCustomError:
    """Make the error that a check of a field raises; pydantic adds where the field is."""
    # The texts go in as values: braces in them are text.
    return PydanticCustomError(code, "{reason}", {"reason": reason, "fix": fix})


def field_path(where: Where) -> str:
    """Write a path as people do, as in `specialists[1].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).removeprefix(".")


def did_you_mean(name: str, known: Iterable[str], else_: str) -> str:
    """Suggest the names that are closest to an unknown name."""
    near = get_close_matches(name, [*known])
    likeness = [SequenceMatcher(a=candidate, b=name).ratio() for candidate in near]
    nearest = [name for name, like in zip(near, likeness, strict=True) if like == likeness[0]]
    return f"Did you mean {' or '.join(nearest)}?" if nearest else else_


def name_like(
    pattern: str, reason: str, fix: str, reserved: Callable[[], Iterable[str]] = tuple
) -> Callable[[str], str]:
    def checked(name: str) -> str:
        if name in reserved() or not re.fullmatch(pattern, name):
            raise field_error("bad_name", reason, fix)
        return name

    return checked


def list_in(parts: object) -> Sequence[Any]:
    """The parts of a field that is a list; none of what is something else."""
    return cast("Sequence[Any]", parts if isinstance(parts, list | tuple) else ())


def fields_of(part: object) -> Mapping[str, Any]:
    """The fields of a part, in Python or in a file."""
    return cast("Any", part if isinstance(part, Mapping) else getattr(part, "__dict__", {}))


def row(value: object, info: ValidationInfo) -> object:
    """Refuse what is not a list; a text is a sequence, too."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        fix = f"Give a list: {info.field_name}=[...]; in a file begin each entry with '- '."
        raise field_error("wrong_type", "This is not a list.", fix)
    return cast("object", value)


def flag_or_names(value: object, info: ValidationInfo) -> object:
    """Refuse what is neither true, false nor a list of names."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    items = cast("Sequence[object]", value) if is_list else (None,)
    if isinstance(value, bool) or all(isinstance(item, str) for item in items):
        return cast("object", value)
    fix = f"Write true, or a list of names: {info.field_name}: [NAME]."
    raise field_error("wrong_type", "This is neither true nor a list of names.", fix)


# A type checker sees what Python gives.
if TYPE_CHECKING:
    Row = Sequence
    FlagOrNames = bool | Sequence[str]
else:
    Row = Annotated[Sequence[T], BeforeValidator(row)]
    FlagOrNames = Annotated[bool | Sequence[str], BeforeValidator(flag_or_names)]


_said: set[str] = set()


class Part(Value):
    """A part of a team or a job.

    A part that is created with mistakes keeps them: the object that contains it reports them
    together with all others.
    """

    model_config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    old_names: ClassVar[Mapping[str, str]] = {}
    """Fields that had another name once: the old name, and the new one."""

    _refusal: ValidationError | None = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # A type checker reads the fields.

        def __init__(self, *positional: Any, **fields: Any) -> None:
            """Take the fields; those that are `kw_only=False` may be first, without a name."""
            kind = type(self)
            fields = kind.named(positional) | fields
            for old, new in kind.old_names.items():
                if old in fields and new not in fields:
                    called = kind.__name__
                    tell_old_name(f"{called}({old}=...)", f"{called}({new}=...)", stacklevel=2)
                    fields[new] = fields.pop(old)
            try:
                super().__init__(**fields)
            except ValidationError as error:
                kept = BaseModel.model_construct.__func__(kind, **fields)
                for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_private__"):
                    object.__setattr__(self, slot, getattr(kept, slot))
                self.refuse(error)

        # Else pydantic would call it for what a file holds, too, and leave out what is around.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def named(cls, positional: tuple[Any, ...]) -> dict[str, Any]:
        """The fields that are given without their names."""
        return _named(cls, positional)

    def refuse(self, mistakes: ValidationError) -> None:
        """Keep mistakes until they are reported."""
        self._refusal = mistakes

    @classmethod
    def completed(
        cls,
        fields: Mapping[str, Any],
        around: Surroundings | None,  # noqa: ARG003 - for those who override it
    ) -> Mapping[str, Any]:
        """Add what follows from what is given; `around` is there if it is in a file."""
        return fields

    @classmethod
    def broken_rules(
        cls,
        fields: Mapping[str, Any],  # noqa: ARG003 - for those who override it
    ) -> Iterator[InitErrorDetails]:
        """Find mistakes between the fields, in addition to mistakes in each."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_mistakes(
        cls, written: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(written, Part):
            if (refusal := written._refusal) is not None:  # noqa: SLF001 - it is a part, too
                raise refusal
            return handler(written)
        if not isinstance(written, Mapping):
            return handler(written)
        whole = cls.completed(cast("Mapping[str, Any]", written), info.context)
        fields = {name: value for name, value in whole.items() if value is not None}
        mistakes = list(cls.broken_rules(fields))
        try:
            part = handler(whole)
        except ValidationError as error:
            mistakes += [_again(details) for details in error.errors(include_url=False)]
        else:
            if not mistakes:
                return part
        raise ValidationError.from_exception_data(cls.__name__, mistakes)


def rule_error(
    where: tuple[str | int, ...], value: object, code: Any, reason: str, fix: str
) -> InitErrorDetails:
    """Make the mistake of a rule, at a place below the part."""
    return InitErrorDetails(type=field_error(code, reason, fix), loc=where, input=value)


def tell_old_name(old: str, new: str, stacklevel: int = 1) -> None:
    """Warn, once in a process, of a name that was replaced by another one."""
    if old not in _said:
        _said.add(old)
        text = f"{old} is the old name of {new}, and does the same. Write {new}."
        warnings.warn(text, DeprecationWarning, stacklevel + 1)


def _named(kind: type[BaseModel], positional: tuple[Any, ...]) -> dict[str, Any]:
    names = [name for name, field in kind.model_fields.items() if field.kw_only is False]
    if len(positional) > len(names):
        most = f"at most {len(names)} without a name: {', '.join(names)}"
        raise TypeError(f"{kind.__name__}() takes {most}; {len(positional)} were given.")
    return dict(zip(names, positional, strict=False))


def _again(error: ErrorDetails) -> InitErrorDetails:
    context = error.get("ctx", {})
    kind: Any = error["type"]
    if "fix" in context:
        kind = field_error(kind, context["reason"], context["fix"])
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)
