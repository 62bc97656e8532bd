"""The digest of a round: its results, each with the beginning of its text, and a line for each."""

from collections.abc import Mapping

from langchain_core.messages import AIMessage

from replan.plan.statuses import excerpt
from replan.state.results import CollectedResults, ExecutionStatus, SpecialistResult

_LINE = 200  # characters of a result in the summary


def collect(results: Mapping[str, SpecialistResult]) -> CollectedResults:
    """Divide results into successes and all others, with texts cut to excerpts."""
    succeeded = {k for k, result in results.items() if result.status is ExecutionStatus.SUCCESS}
    return CollectedResults(
        results={key: _digest(result) for key, result in results.items()},
        successful_results=tuple(key for key in results if key in succeeded),
        failed_results=tuple(key for key in results if key not in succeeded),
        summary=generate_result_summary(results),
    )


def generate_result_summary(results: Mapping[str, SpecialistResult]) -> str:
    """Write a line for each result: its status, and how its error or its text begins."""
    return "\n".join(
        f"- {key}: {_status_words(result)}, confidence {result.confidence:g}: {_beginning(result)}"
        for key, result in results.items()
    )


def _digest(result: SpecialistResult) -> SpecialistResult:
    text = excerpt(result.text)
    if result.excerpt or result.result is None or text == result.text:
        return result
    message = AIMessage(text, id=result.result.id)
    beginning = {"result": message, "excerpt": True, "length": len(result.text)}
    return result.model_copy(update=beginning)


def _beginning(result: SpecialistResult) -> str:
    text = (result.error or result.text).strip().partition("\n")[0]
    if not text and result.excerpt:
        return f"{result.length} characters"
    return excerpt(text, _LINE)


def _status_words(result: SpecialistResult) -> str:
    return f"{result.status.value}, incomplete" if result.cut else result.status.value
