"""A strict chat model for tests: it says what the script says and fails on everything else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from replan.prompts.sections import Call, call_of
from replan.state.usage import TokenCount
from replan.testing.faults import Hang
from replan.testing.replies import Reply, chunks_of, message_of
from replan.testing.script import Replies, Script


@dataclass(frozen=True)
class ModelCall:
    """One call of a scripted model; node, step and specialist as its prompt names them."""

    node: str | None
    step: int | None
    specialist: str | None
    messages: tuple[BaseMessage, ...]


class ScriptedModel(BaseChatModel):
    """A chat model that plays a script, one reply for each call.

    A call without a reply raises `UnexpectedModelCall`; replies without a call raise
    `UnconsumedReplies` at the end of the `with` block or from `assert_finished`. Replies go to the
    node and step that they are written for, in whatever order the calls arrive.

    Example:
        >>> with ScriptedModel({"*": ["Hello."]}) as model:
        ...     model.invoke("Hi").text
        'Hello.'
    """

    _script: Script = PrivateAttr()
    _calls: list[ModelCall] = PrivateAttr(default_factory=list[ModelCall])
    _bound: list[tuple[str, ...]] = PrivateAttr(default_factory=list[tuple[str, ...]])
    _counts: list[TokenCount] = PrivateAttr(default_factory=list[TokenCount])

    def __init__(self, replies: Replies, **options: Any) -> None:
        # LangChain's global cache would answer repeated prompts and hide calls.
        options.setdefault("cache", False)
        super().__init__(**options)
        self._script = Script(replies)

    @property
    def calls(self) -> list[ModelCall]:
        """Every call so far, in the order of arrival, unexpected ones too."""
        return self._calls

    @property
    def bound_tools(self) -> list[tuple[str, ...]]:
        """The names of the tools of each `bind_tools`."""
        return self._bound

    @property
    def usage(self) -> TokenCount:
        """The sum of what the replies so far reported."""
        return sum(self._counts, TokenCount())

    @property
    def left(self) -> dict[str, int]:
        """The keys that still have replies, and how many."""
        return self._script.left

    def assert_finished(self) -> None:
        """Check that each reply was used and that no call was left without one.

        Raises:
            UnexpectedModelCall: A call found no reply, even if the runtime swallowed the error.
            UnconsumedReplies: Replies are left over.
        """
        self._script.assert_finished()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._script.leave(error)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Record the tools' names and give this same model: the script decides what is called."""
        names = (convert_to_openai_tool(tool)["function"]["name"] for tool in tools)
        self._bound.append(tuple(names))
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._counted_result(self._reply_now(messages), messages)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        return self._counted_result(await self._reply(messages), messages)

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply_now(messages)
        for number, chunk in enumerate(chunks_of(reply, messages)):
            time.sleep(reply.chunk_delay if number else 0)
            yield self._counted(chunk)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = await self._reply(messages)
        for number, chunk in enumerate(chunks_of(reply, messages)):
            # Also without a delay other tasks get their turn between two chunks.
            await asyncio.sleep(reply.chunk_delay if number else 0)
            yield self._counted(chunk)

    def _reply_now(self, messages: Sequence[BaseMessage]) -> Reply:
        reply = self._script.reply_now(self._note_call(messages), messages)
        time.sleep(reply.latency)
        if isinstance(reply.fault, Hang):
            raise TimeoutError("A scripted hang: nobody could end it in a synchronous call.")
        return reply

    async def _reply(self, messages: Sequence[BaseMessage]) -> Reply:
        reply = await self._script.reply(self._note_call(messages), messages)
        await asyncio.sleep(reply.latency)
        if isinstance(reply.fault, Hang):
            await asyncio.Event().wait()
        return reply

    def _note_call(self, messages: Sequence[BaseMessage]) -> Call | None:
        call = call_of(messages)
        named = (call.node, call.step, call.specialist) if call else (None, None, None)
        self._calls.append(ModelCall(*named, tuple(messages)))
        return call

    def _counted_result(self, reply: Reply, messages: Sequence[BaseMessage]) -> ChatResult:
        message = message_of(reply, messages)
        self._count(message)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _counted(self, chunk: AIMessageChunk) -> ChatGenerationChunk:
        self._count(chunk)
        return ChatGenerationChunk(message=chunk)

    def _count(self, message: AIMessage) -> None:
        usage = message.usage_metadata
        if usage is not None:
            read, made = usage["input_tokens"], usage["output_tokens"]
            self._counts.append(TokenCount(calls=1, input_tokens=read, output_tokens=made))
