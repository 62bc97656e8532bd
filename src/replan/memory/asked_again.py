"""A message that asks a model again: known by its class to whoever is told of the call."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage


class AskedAgain(HumanMessage):
    """What is wrong with the reply before it, and what to write instead."""


def asked_again(messages: list[BaseMessage], reply: str, complaint: str) -> list[BaseMessage]:
    """Give the messages that show a model its reply, and why another one is wanted."""
    return [*messages, AIMessage(reply or "(empty)"), AskedAgain(content=complaint)]
