"""A model with fallbacks, for the case that it does not reply."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Fallback:
    """Models that are called in turn until one replies; can be used wherever a model can.

    A busy model first gets its own retries. After a part of a reply was shown, no other model is
    called. Each call is reserved, counted and priced
    under the name of the model that is called; a warning reports the change of model.

    Attributes:
        models: The models, in the order in which they are asked.
    """

    def __init__(self, first: "BaseChatModel | str", *others: "BaseChatModel | str") -> None:
        """Put models into an order.

        Args:
            first: The model that is asked first, or its name.
            others: Those that are asked after it.
        """
        self.models: tuple[Any, ...] = (first, *others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fallback) and self.models == other.models

    def __hash__(self) -> int:
        return hash(tuple(model if isinstance(model, str) else id(model) for model in self.models))

    def __str__(self) -> str:
        return ", else ".join(
            model if isinstance(model, str) else type(model).__name__ for model in self.models
        )

    def __repr__(self) -> str:
        return f"Fallback({', '.join(map(repr, self.models))})"


def models_in(model: Any) -> tuple[Any, ...]:
    """The models of a field: one, or those of a `Fallback`."""
    return model.models if isinstance(model, Fallback) else (model,)


def each_model(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every model in some fields, with the field that it is in."""
    for field, value in fields.items():
        for model in models_in(value):
            yield field, model


def with_fallbacks(name: str, fallbacks: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A model and all its fallbacks of a file, each once."""
    names: dict[str, None] = {}
    left = [name]
    while left:
        next_ = left.pop(0)
        if next_ not in names:
            names[next_] = None
            left = [*fallbacks.get(next_, ()), *left]
    return tuple(names)
