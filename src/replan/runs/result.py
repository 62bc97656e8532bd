"""The result of a run: one typed value over its state, for programs, people and notebooks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from langchain_core.messages import AIMessage
from pydantic import JsonValue
from typing_extensions import TypeVar

from replan.plan.model import StepStatus, TaskPlan
from replan.prompts.replies.shape import MisshapenError, Shape
from replan.runs.asked.asks import asks_in
from replan.state.enhanced import EnhancedState
from replan.state.outcomes import Outcome
from replan.state.questions import Question
from replan.state.results import SpecialistResult, newest_results
from replan.state.usage import Usage

RestOutcome = Literal["waiting", "interrupted"] | Outcome
"""The outcome of a run that no process works on: over, waiting for a person, or stopped."""

T = TypeVar("T", default=Any)
"""The type of an answer, where it is given."""

T_co = TypeVar("T_co", covariant=True, default=Any)

_LONGEST = 60


class StepResults(Mapping[str, SpecialistResult]):
    """The results of a run's steps: `results[3]`, or by key, `results["3/buyer"]`.

    A typed result has the value of its type as its `output`, which is read when the result is
    looked up. One that was stored with another version of the type raises a `ValueError` then; the
    others can still be read, and its JSON is in the `state` of the `RunResult`.

    If several specialists did a step, `results[3]` raises a `KeyError` that names the keys, and
    `of(3)` returns all of them. Iteration yields the keys.
    """

    def __init__(
        self, by_key: Mapping[str, SpecialistResult], shapes: Mapping[str, Shape] | None = None
    ) -> None:
        """Take the results, and the types of their outputs by specialist."""
        self._by_key = by_key
        self._shapes = shapes or {}

    def of(self, step_id: int) -> tuple[SpecialistResult, ...]:
        """Return all results of a step; empty if it has none."""
        return tuple(map(self._typed, self._keys_of(step_id)))

    def __getitem__(self, step: int | str) -> SpecialistResult:
        if isinstance(step, str):
            return self._typed(step)
        keys = self._keys_of(step)
        if len(keys) == 1:
            return self._typed(keys[0])
        written = ", ".join(f"results['{key}']" for key in keys)
        problem = f"several specialists did it; write {written}" if keys else "it has no result"
        raise KeyError(f"Step {step}: {problem}.")

    def __contains__(self, step: object) -> bool:
        return bool(self._keys_of(step)) if isinstance(step, int) else step in self._by_key

    def _keys_of(self, step_id: int) -> list[str]:
        return [key for key, result in self._by_key.items() if result.step_id == step_id]

    def _typed(self, key: str) -> SpecialistResult:
        result = self._by_key[key]
        shape = self._shapes.get(result.specialist_name)
        if shape is None or result.output is None:
            return result
        location = f"results['{key}']"
        return result.model_copy(update={"output": _as_type(result.output, shape, location)})

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        return f"StepResults({', '.join(self._by_key)})"


@dataclass(frozen=True, eq=False, repr=False)
class RunResult(Generic[T_co]):
    """The result of a run, or its status if it waits or was stopped.

    `RunResult[Model]` is the result of a run whose answer has an `output_type`.

    Attributes:
        state: The whole state, as LangGraph has it.
        outcome: How the run ended; `waiting` if it waits for a person, `interrupted` if it was
            stopped.
        duration: Seconds that this call worked on the run.
        shapes: The types of results by specialist, and the type of the answer under "".
    """

    state: EnhancedState
    outcome: RestOutcome
    duration: float = 0.0
    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.state.get("run_id", "")

    @property
    def origin(self) -> str:
        """The run whose document and results this run began with; otherwise empty."""
        return self.state.get("source_run_id", "")

    @property
    def answer(self) -> AIMessage | None:
        """The answer as a message; None before there is one."""
        return self.state.get("final_answer")

    @property
    def text(self) -> str:
        """The text of the answer; empty before there is one."""
        return "" if self.answer is None else self.answer.text

    @property
    def output(self) -> T_co | None:
        """The answer as a value of the host's `output_type`; None without one.

        Raises:
            ValueError: The value was stored with another version of the type.
        """
        return _as_type(self.state.get("output"), self.shapes.get(""), "output")

    @property
    def plan(self) -> TaskPlan | None:
        """The plan; its `content` is the document. None for a request that needed none."""
        return self.state.get("current_plan")

    @property
    def document(self) -> str:
        """The plan as its Markdown document; empty for a request that needed none."""
        return "" if self.plan is None else self.plan.content

    @property
    def limit_reached(self) -> str:
        """The limit that ended the run or cut off its answer; otherwise empty."""
        return self.state.get("limit_reached", "")

    @property
    def results(self) -> StepResults:
        """The results of the steps: `results[3].text`, or `.output` for a typed result."""
        return StepResults(newest_results(self.state), self.shapes)

    @property
    def usage(self) -> Usage:
        """Model calls, tokens and money, in all and by node or specialist."""
        return self.state.get("usage", Usage())

    @property
    def pending_questions(self) -> tuple[Question, ...]:
        """What the run waits for: questions, and calls and plans to approve; may be empty."""
        return asks_in(self.state)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was unexpected in the run, one sentence each."""
        return tuple(self.state.get("warnings", ()))

    def __repr__(self) -> str:
        text = self.text or ", ".join(ask.key for ask in self.pending_questions)
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        steps = f", {_steps_of(self.plan)}" if self.plan else ""
        return f"<RunResult {self.outcome}: {text!r}{steps}, run {self.run_id[:8]}>"

    def _repr_markdown_(self) -> str:
        """The result in a notebook: the outcome, the answer, open questions, the plan."""
        usage = f"{self.usage.calls} model calls, {self.usage.total_tokens} tokens"
        steps = f"{_steps_of(self.plan)}, " if self.plan else ""
        parts = [f"**{self.outcome}** ({steps}{usage}, {self.duration:.1f} s)", self.text]
        parts += [f"- waits for `{ask.key}`: {ask.text}" for ask in self.pending_questions]
        parts += [f"- warning: {warning}" for warning in self.warnings]
        parts.append(self.document)
        return "\n\n".join(part for part in parts if part)


def _steps_of(plan: TaskPlan) -> str:
    done = sum(step.status is StepStatus.COMPLETED for step in plan.steps)
    return f"{done} of {len(plan.steps)} steps done"


def _as_type(kept: JsonValue, shape: Shape | None, location: str) -> Any:
    """Read a stored value as its type; None is no value, or the only one of its type."""
    if kept is None or shape is None:
        return kept
    try:
        return shape.value_of(kept)
    except MisshapenError as error:
        raise ValueError(
            f"{location} cannot be read: {error}. It was stored with another version of the type. "
            "Read its JSON in the `state` of the result, or let the step run again."
        ) from error


def result_of(
    state: EnhancedState, duration: float = 0.0, shapes: Mapping[str, Shape] | None = None
) -> RunResult[Any]:
    outcome: RestOutcome = state.get("outcome") or "interrupted"
    if state.get("__interrupt__"):
        outcome = "waiting"
    return RunResult(state, outcome, duration, shapes or {})
