"""What the models of many tests say, the thread of their runs, and what runs are given."""

from typing import Any

THREAD: Any = {"configurable": {"thread_id": "t"}}
COMPLETE = "---\nverdict: complete\n---\nThe answer."
DONE = "---\nverdict: complete\n---\nDone."
END = "---\nverdict: complete\n---\nThe end."
SIMPLE = "---\ncomplexity: simple\n---\n"
COMPLEX = "---\ncomplexity: complex\n---\n"


def given(plan: str) -> dict[str, Any]:
    """A request with its plan."""
    return {"messages": [("user", "Go.")], "plan": plan}
