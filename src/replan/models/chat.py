"""One call of a chat model: streamed if something listens, else as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from replan.base.errors import ReplanError, ReplyTooLongError
from replan.base.failures import broke_off, describe, is_transient
from replan.base.langgraph_inside.callbacks import (
    handlers_of,
    has_listener,
    is_seen,
    makes_langchain_stream,
    reported_inside_only,
    whole_reply,
)
from replan.base.langgraph_inside.langchain import is_of_openai, provider_of, streams_itself
from replan.base.texts.storable import well_formed
from replan.models.reply_end import StreamEnds, check_unbroken, may_hide_refusal
from replan.models.retries import (
    error_raised,
    pause_if_busy,
    retried,
    tries_of,
    with_tries,
)
from replan.models.streams import (
    LONGEST_REPLY,
    OnText,
    Toolset,
    calls_in,
    read,
    whole_characters,
)
from replan.ports.allowance import USUAL_REPLY, Allowance, Held, Request
from replan.ports.run_context import here, using
from replan.prompts.sections import in_order

LONG_REPLY = 16_384  # tokens of a reply of a model without a bound that is known to write this much

# What models call the bound of a reply.
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")

_REFUSALS = frozenset({400, 404, 405, 406, 415, 422, 501})

# How LangChain's model of the OpenAI protocol fails at an answer that is none; elsewhere, these are
# faults of the program.
_UNREAD = (TypeError, AttributeError, LookupError)

# Errors by which a run is bounded, stopped or found wrong: another model changes nothing.
_OURS = (ReplanError, GraphBubbleUp)

_pause = pause_if_busy(error_raised, first=0.5, longest=8)


class Chat:
    """A chat model that remembers how its server sends replies."""

    turns = 1

    def __init__(
        self,
        model: BaseChatModel,
        name: str = "",
        retries: int = 0,
        other: "Chat | None" = None,
    ) -> None:
        self.model = model
        self.bound = _bound_of(model)
        self.other = other  # the model to call if this one gives no reply
        # Its names: as configured, of its provider, and of its class.
        self.names = names_of(model, name)
        self.provider_name = names_of(model)[0]  # its name at the provider
        # Further attempts at one reply that failed in a way that can pass.
        self.retries = retries
        self.can_stream = True  # whether its server has not refused to stream
        self.sends_whole = True  # whether its server has not dropped a whole reply
        self.streams = streams_itself(model)
        self.provider = provider_of(model)
        self.ends = StreamEnds()  # how its server ends streams
        self.reply_format: Mapping[str, Any] | None = None  # what its provider enforces

    def within(self, tokens: int) -> "Chat":
        """The same model, whose replies end after this many tokens if it supports a bound."""
        field = self.bound.field
        model_bound = None if field is None else getattr(self.model, field)
        if field is None or (isinstance(model_bound, int) and 0 < model_bound <= tokens):
            return self
        twin = copy(self)
        twin.model = self.model.model_copy(update={field: tokens})
        twin.bound = _bound_of(twin.model)
        return twin

    @property
    def is_streamed(self) -> bool:
        """Whether its replies are streamed, whoever listens."""
        return self.streams or not self.sends_whole

    @property
    def counts_streams(self) -> bool:
        """Whether the usage of a streamed reply is known: a client may be set not to ask for it."""
        return all(getattr(chat.model, "stream_usage", True) for chat in self.chain)

    @property
    def can_enforce(self) -> bool:
        """Whether the model says that its provider can enforce the form of a reply."""
        return bool((self.model.profile or {}).get("structured_output"))

    def enforcing(self, reply_format: Mapping[str, Any]) -> "Chat":
        """The same model, with a form of its replies that its provider enforces if it can."""
        twin = copy(self)
        twin.reply_format = reply_format if self.can_enforce else None
        twin.other = self.other and self.other.enforcing(reply_format)
        return twin

    async def reply(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        on_text: OnText | None = None,
        toolset: Toolset | None = None,
    ) -> AIMessage:
        """Ask the model; `on_text` gets the pieces of the text as they arrive."""
        messages = in_order(messages)
        # The reply is streamed if `on_text` or a callback receives its pieces, or if the server has
        # dropped a whole one before. Each call asks for leave by itself: the first one, each
        # further attempt at a busy server, and the one for the whole reply where the server refuses
        # to stream, or if a stream ended without text and may have been a refusal.
        is_heard = on_text is not None or has_listener(config)
        is_followed = on_text is not None or is_seen(config)
        # There is more than one where a graph of ours is a specialist of another.
        allowances = [one for one in handlers_of(config) if isinstance(one, Allowance)]
        request = _ReplyRequest(
            self,
            messages,
            config,
            allowances,
            on_text,
            toolset,
            is_heard,
            is_followed,
            is_refused=not self.can_stream,
        )
        try:
            return await request.attempt()
        except Exception as error:  # noqa: BLE001 - tenacity raises it if it is the last one
            failed = error
        try:
            return await retried(request.attempt, request.retrying(), failed)
        except Exception as error:
            with_tries(error, request.calls)
            # A reply that was partly shown must not begin again.
            if self.other is None or request.is_shown or isinstance(error, _OURS):
                raise
            why = describe(error)
        here().warn(
            f"The model {self.names[0]} gave no reply, so {self.other.names[0]} was asked: {why}"
        )
        try:
            return await self.other.reply(messages, config, on_text, toolset)
        except Exception as error:
            with_tries(error, max(request.calls, tries_of(error)))
            raise

    @property
    def chain(self) -> "Iterator[Chat]":
        """This model, and its fallbacks."""
        chat: Chat | None = self
        while chat is not None:
            yield chat
            chat = chat.other


@dataclass(slots=True)
class _ReplyRequest:
    """A requested reply: the request, and what its attempts have shown so far."""

    chat: Chat
    messages: Sequence[BaseMessage]
    config: RunnableConfig
    allowances: Sequence[Allowance]  # those among its callbacks
    on_text: OnText | None
    toolset: Toolset | None
    is_heard: bool  # whether it is to come in pieces
    is_followed: bool  # whether somebody sees them
    is_refused: bool  # whether its server does not stream
    is_unreadable: bool = False  # whether LangChain makes no message of the whole reply
    chunks: list[AIMessageChunk] = field(default_factory=list[AIMessageChunk])
    calls: int = 0  # how many were made
    refusals: int = 0  # how many of them only said that the server does not stream

    @property
    def is_shown(self) -> bool:
        """Whether somebody may have seen a part of the reply."""
        return self.is_followed and bool(self.chunks)

    async def attempt(self) -> AIMessage:
        """Ask once; silence ends only this where another model may be asked."""
        if self.chat.other is None:
            return await self._attempt()
        async with AsyncExitStack() as ends:
            for one in self.allowances:
                await ends.enter_async_context(one.ending_if_silent())
            return await self._attempt()

    async def _attempt(self) -> AIMessage:
        chat = self.chat
        in_pieces = self.is_heard or self.is_unreadable or chat.is_streamed
        if in_pieces and not self.is_refused and not chat.ends.is_in_doubt:
            try:
                streamed = await self._request_stream()
            except Exception as error:
                if self.chunks or self.is_unreadable or not _may_be_refusal(error):
                    raise
                self.is_refused = True
                self.refusals += type(error) is not ValueError
            else:
                if not (may_hide_refusal(streamed) and chat.sends_whole):
                    return streamed
        is_silent = bool(self.chunks)
        try:
            message = await self._request_whole(
                in_one=self.is_refused or is_silent or chat.ends.is_in_doubt
            )
        except ValidationError:
            if self.is_refused or is_silent:
                raise
            # LangChain makes no message of a tool call whose arguments are not an object. Of the
            # pieces of such a call, one can be made that says so.
            self.is_unreadable = True
            return await self._request_stream()
        # A refusal of streaming looks like any other bad request, so the whole call decides.
        chat.can_stream = not self.is_refused
        # What is asked after a refusal is one call again, so that an attempt keeps its bound.
        chat.ends.is_in_doubt |= is_silent
        return _show_whole(message, self.on_text)

    def retrying(self) -> AsyncRetrying:
        most, left = self.chat.retries + 1, here().tries
        tries = most if left is None else min(most, left)
        return AsyncRetrying(
            # The beginning of a reply must not be shown twice.
            retry=retry_if_exception(lambda error: not self.is_shown and is_transient(error)),
            stop=lambda _: self.calls - self.refusals >= tries,
            wait=_pause,
            before_sleep=self._note_pause,
            reraise=True,
        )

    def _note_pause(self, state: RetryCallState) -> None:
        for one in self.allowances:
            one.pauses(state.next_action.sleep if state.next_action else 0.0)

    async def _request_stream(self) -> AIMessage:
        on_text = self.on_text and whole_characters(self.on_text)
        async with self._leave() as leave:
            model = self._model(leave.most_output, {})
            self.chunks.clear()
            stream = model.astream(list(self.messages), self._begin(leave, model))
            await read(stream, self.chunks, on_text, self.toolset, leave.hear)
            leave.reply = whole = _joined(self.chunks)
        return self._whole(whole)

    async def _request_whole(self, *, in_one: bool) -> AIMessage:
        """Request a reply in one piece; with `in_one`, even if LangChain would stream it."""
        chat = self.chat
        streams_all_the_same = in_one and (chat.streams or makes_langchain_stream(self.config))
        changes = {"disable_streaming": True} if streams_all_the_same else {}
        async with self._leave() as leave:
            model = self._model(leave.most_output, changes)
            config = self._begin(leave, model)
            try:
                leave.reply = message = _well_formed(
                    await whole_reply(model, self.messages, config)
                )
            except Exception as error:
                # A proxy ends connections that are silent for long.
                chat.sends_whole = chat.sends_whole and not broke_off(error)
                if isinstance(error, _UNREAD) and is_of_openai(chat.model):
                    raise ValueError(f"the server sent no reply ({describe(error)})") from error
                raise
        if len(message.text) > LONGEST_REPLY:
            raise ReplyTooLongError(LONGEST_REPLY)
        check_unbroken(message)
        chat.ends.take_whole()
        return message

    def _begin(self, leave: "_Leave", model: Runnable[Any, AIMessage]) -> RunnableConfig:
        """Begin a call of a model, and return the configuration for it."""
        # LangChain has less to do if it does not report the call to the allowances, which know of
        # it. What is bound to a model fills the callbacks up from the surroundings.
        is_reported = not isinstance(model, BaseChatModel)
        leave.begin(is_reported=is_reported)
        return self.config if is_reported else reported_inside_only(self.config, self.allowances)

    def _leave(self) -> "_Leave":
        chat, tools = self.chat, () if self.toolset is None else self.toolset.tools
        schemas = () if chat.reply_format is None else (chat.reply_format,)
        request = Request(
            model=chat.provider_name,
            names=chat.names,
            messages=self.messages,
            tools=[*tools, *schemas],
            most_output=chat.bound.tokens,
            provider=chat.provider,
        )
        return _Leave(self.allowances, request)

    def _model(
        self, most_output: int | None, changes: Mapping[str, Any]
    ) -> Runnable[Any, AIMessage]:
        """The model for one call, with `changes` to its fields and a bound of its reply."""
        chat = self.chat
        if chat.bound.field is not None and most_output is not None:
            changes = {**changes, chat.bound.field: most_output}
        model = chat.model.model_copy(update=changes) if changes else chat.model
        self.calls += 1
        if self.toolset is not None:
            return model.bind_tools(self.toolset.tools)
        if chat.reply_format is not None:
            return model.bind(response_format=chat.reply_format)
        return model

    def _whole(self, whole: AIMessage) -> AIMessage:
        """The reply that the pieces of a stream make."""
        if not isinstance(cast("object", whole), BaseMessageChunk):
            return _well_formed(whole)
        whole = cast("AIMessageChunk", whole)
        self.chat.ends.take(whole)
        check_unbroken(whole)
        message = message_chunk_to_message(whole)
        if not isinstance(message, AIMessage):
            return AIMessage(well_formed(whole.text))
        if not whole.tool_call_chunks:
            return _well_formed(message)
        return _well_formed(message.model_copy(update=calls_in(whole.tool_call_chunks)))


def names_of(model: BaseChatModel, name: str = "") -> tuple[str, ...]:
    """The names of a model: as configured, of its provider, and of its class."""
    fields = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    names = (name, name.partition(":")[2], *fields, type(model).__name__)
    return tuple(dict.fromkeys(one for one in names if isinstance(one, str) and one))


def _joined(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """The message of a stream; a model that must not stream gives it whole, as the only piece."""
    if not chunks:
        return AIMessage("")
    return chunks[0] if len(chunks) == 1 else chunks[0] + [*chunks[1:]]


class _Leave:
    """Leave to make one call, which is made in a block, and charged when that is left."""

    def __init__(self, allowances: Sequence[Allowance], request: Request) -> None:
        self.reply: AIMessage | None = None
        self._allowances = allowances
        self._request = request
        self._held: list[Held] = []

    async def __aenter__(self) -> Self:
        try:
            for one in self._allowances:
                self._held.append(await one.take(self._request))
        except BaseException as error:
            await self._end(error)
            raise
        self._inside = using(permits=(*here().permits, *self._held))
        self._inside.__enter__()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        # What is thrown away without an end is not in its context any more.
        with suppress(ValueError):
            self._inside.__exit__()
        if (outcome := self.reply or error) is not None:
            await self._end(outcome)

    def begin(self, *, is_reported: bool) -> None:
        """Say that the call is made now."""
        for held in self._held:
            held.begin(is_reported=is_reported)

    def hear(self, piece: AIMessageChunk, text: str) -> None:
        for held in self._held:
            held.hear(piece, text)

    @property
    def most_output(self) -> int | None:
        """The tokens that the reply may have; None without a bound."""
        bounds = [held.most_output for held in self._held]
        return min((bound for bound in bounds if bound is not None), default=None)

    async def _end(self, outcome: AIMessage | BaseException) -> None:
        for held in self._held:
            await held.end(outcome)


class _Bound(NamedTuple):
    """How long a model's replies may be."""

    field: str | None  # of the model, if one bounds them
    tokens: int


def _bound_of(model: BaseChatModel) -> _Bound:
    field = next((name for name in _BOUNDS if name in type(model).model_fields), None)
    model_bound = None if field is None else getattr(model, field)
    if isinstance(model_bound, int) and model_bound > 0:
        return _Bound(field, model_bound)
    profile_bound = (model.profile or {}).get("max_output_tokens")
    return _Bound(field, USUAL_REPLY if profile_bound is None else min(profile_bound, LONG_REPLY))


def _show_whole(message: AIMessage, on_text: OnText | None) -> AIMessage:
    if on_text is not None and not message.tool_calls:
        on_text(message.text)
    return message


def _well_formed(message: AIMessage) -> AIMessage:
    content = message.content
    if isinstance(content, str) and (clean := well_formed(content)) != content:
        return message.model_copy(update={"content": clean})
    return message


def _may_be_refusal(error: Exception) -> bool:
    """Whether a stream without any piece may only mean that the server does not stream."""
    if getattr(error, "status_code", None) in _REFUSALS:
        return True
    # LangChain says so of an empty stream, with an error of no class of its own.
    return isinstance(error, NotImplementedError) or type(error) is ValueError
