"""The digest of a round: its results in excerpts, and a line for each."""

from langchain_core.messages import AIMessage

from replan.plan.statuses import excerpt
from replan.state.results import CollectedResults, ExecutionStatus, SpecialistResult


def collect(results: dict[str, SpecialistResult]) -> CollectedResults:
    """Divide results into successes and all others, with texts cut to excerpts."""
    succeeded = {k for k, result in results.items() if result.status is ExecutionStatus.SUCCESS}
    return CollectedResults(
        results={key: _digest(result) for key, result in results.items()},
        successful_results=tuple(key for key in results if key in succeeded),
        failed_results=tuple(key for key in results if key not in succeeded),
        summary=generate_result_summary(results),
    )


def generate_result_summary(results: dict[str, SpecialistResult]) -> str:
    """One line for each result."""
    return "\n".join(
        f"- {key}: {_how(result)}, confidence {result.confidence:g}: "
        f"{_first_line(result.error or result.text)}"
        for key, result in results.items()
    )


def _digest(result: SpecialistResult) -> SpecialistResult:
    text = excerpt(result.text)
    if result.result is None or text == result.text:
        return result
    return result.replace(result=AIMessage(text, id=result.result.id))


def _how(result: SpecialistResult) -> str:
    return f"{result.status.value}, not whole" if result.cut else result.status.value


def _first_line(text: str) -> str:
    return excerpt(text.strip().partition("\n")[0], 200)
