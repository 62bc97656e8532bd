"""What the offline model does about facts, where it is given the tools for them.

It understands `remember that ...`, `what do you know about ...` and `forget FACT`, whole.
"""

import re
from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from replan.prompts.sections import call_of, sections_of
from replan.prompts.templates import load
from replan_local.host.progress import first_of

_REQUESTS = {
    "remember": re.compile(r"(?is)(?:please\s+)?remember(?:\s+that\b)?:?\s+(?P<text>.+)"),
    "recall": re.compile(
        r"(?i)what\s+do\s+you\s+(?:know|remember)\s+about\s+(?=\S)(?P<query>.*[^\s?])[\s?]*"
    ),
    "forget": re.compile(r"(?i)(?:please\s+)?forget\s+(?:fact\s+)?(?P<id>[0-9a-f]{16})\.?"),
}
_ASKED_IN = {"direct_answer": "request", "specialist": "step"}
_FACT = re.compile(r"^fact ([^\s,]+), of (.+):$", re.MULTILINE)


def about_facts(messages: Sequence[BaseMessage], tools: Collection[str]) -> AIMessage | None:
    """Call a tool for facts, or say what it told; None for any other request."""
    if not tools or (call := call_of(messages)) is None:
        return None
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return AIMessage(_told(newest.text)) if newest.name in _REQUESTS else None
    human = next((message.text for message in reversed(messages) if message.type == "human"), "")
    request = first_of(sections_of(human), _ASKED_IN.get(call.node, "")) or human
    for name, form in _REQUESTS.items():
        if name in tools and (found := form.fullmatch(request.strip())):
            arguments = found.groupdict()
            return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id="fact")])
    return None


def is_about_facts(request: str, system: str) -> bool:
    """Whether the answer to a request is looked for among facts, where its host has some."""
    is_one = any(form.fullmatch(request.strip()) for form in _REQUESTS.values())
    return is_one and load("remembering") in system


def _told(text: str) -> str:
    """The result of a tool; facts as a list."""
    facts = first_of(sections_of(text), "facts")
    return _FACT.sub(r"\nFact \1, \2:\n", facts).replace("\n| ", "\n> ").strip() or text
