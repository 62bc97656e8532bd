"""Reading a summary of results, as the collector writes it and as a model may write it."""

import re

from langchain_core.messages import AIMessage

from replan.errors import DeserializationError
from replan.state.results import CollectedResults, ExecutionStatus, SpecialistResult

_LINE = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?`?(?P<step>\d{1,9})/(?P<name>[\w-]+)`?[ \t]*:[ \t]*"
    r"(?P<status>success|failed|partial)\b"
    r"(?:,[ \t]*confidence[ \t]+(?P<confidence>[01](?:\.\d+)?))?"
    r"[ \t]*:?[ \t]*(?P<text>[^\n]*)$",
    re.MULTILINE,
)


def parse_collected_results(content: str) -> CollectedResults:
    """Read a summary with one line for each result.

    Raises:
        DeserializationError: It has no such line.
    """
    results = [_result(found) for found in _LINE.finditer(content)]
    if not results:
        form = "`- 1/name: success, confidence 0.9: what it brought`"
        raise DeserializationError("summary of results", f"no line has the form {form}.")
    succeeded = {r.key for r in results if r.status is ExecutionStatus.SUCCESS}
    return CollectedResults(
        results={result.key: result for result in results},
        successful_results=tuple(r.key for r in results if r.key in succeeded),
        failed_results=tuple(r.key for r in results if r.key not in succeeded),
        summary=content.strip(),
    )


def _result(found: re.Match[str]) -> SpecialistResult:
    status = ExecutionStatus(found["status"])
    is_failure = status is ExecutionStatus.FAILED
    return SpecialistResult(
        step_id=int(found["step"]),
        specialist_name=found["name"],
        status=status,
        confidence=min(1.0, float(found["confidence"] or (0 if is_failure else 1))),
        result=None if is_failure else AIMessage(found["text"]),
        error=found["text"] if is_failure else "",
    )
