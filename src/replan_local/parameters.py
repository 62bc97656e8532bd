"""Read the parameters of a step, and refuse what nobody could have meant."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from replan_local.refusals import CannotAnswerError, did_you_mean


def refuse_misspelt(parameters: Mapping[str, JsonValue], known: Sequence[str]) -> None:
    """Refuse a parameter that is a misspelt one of ours; others are somebody else's business.

    Raises:
        CannotAnswerError: A name is nearly one that is understood.
    """
    for name in parameters:
        hint = "" if name in known else did_you_mean(name, known)
        if hint:
            message = f"No parameter '{name}'. There are: {', '.join(known)}.{hint}"
            raise CannotAnswerError(message)


def given_names(parameters: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    """A parameter that holds one name or several.

    Raises:
        CannotAnswerError: It holds something else.
    """
    value = parameters.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list):
        return tuple(str(part) for part in value)
    message = f"The parameter '{name}' must be a name or a list of names, not {value!r}."
    raise CannotAnswerError(message)


def given_text(parameters: Mapping[str, JsonValue], name: str) -> str:
    """A parameter that holds a text; empty if it is not there.

    Raises:
        CannotAnswerError: It holds something else.
    """
    value = parameters.get(name, "")
    if isinstance(value, str):
        return value.strip()
    message = f"The parameter '{name}' must be a text, not {value!r}."
    raise CannotAnswerError(message)


def given_count(parameters: Mapping[str, JsonValue], name: str) -> int | None:
    """A parameter that holds a whole number from 1; none if it is not there.

    Raises:
        CannotAnswerError: It holds something else.
    """
    value = parameters.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        message = f"The parameter '{name}' must be a whole number from 1, not {value!r}."
        raise CannotAnswerError(message)
    return value
