"""One call of a model: streamed where somebody hears it, whole where nobody does."""

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, HumanMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from replan.base.failures import is_transient
from replan.errors import ConfigurationError, ReplyTooLongError
from replan.models.chat import Chat
from replan.models.streams import LONGEST_REPLY, Toolset
from replan.testing import HttpFault, Reply, Reset, ScriptedHttpError, ScriptedModel, always
from replan.views.ahead.preview import calls_of_reply

REQUEST = [HumanMessage("Hi.")]


class Server(BaseChatModel):
    """A model whose streaming and whole calls can be told apart."""

    _streamed: object = PrivateAttr()
    _whole: object = PrivateAttr()
    _calls: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, streamed, whole="whole"):
        super().__init__(cache=False)
        self._streamed, self._whole = streamed, whole

    def says(self, chunks):
        self._streamed = chunks

    @property
    def calls(self):
        return self._calls

    @property
    def _llm_type(self):
        return "server"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self._calls.append("whole")
        if isinstance(self._whole, Exception):
            raise self._whole
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._whole))])

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        self._calls.append("stream")
        if isinstance(self._streamed, Exception):
            raise self._streamed
        for chunk in self._streamed:
            yield ChatGenerationChunk(message=chunk)


class Client(Server):
    """The same, as LangChain's model of the OpenAI protocol is built."""

    root_async_client: object = None


def refused(status=400):
    return ScriptedHttpError(HttpFault(status))


def pieces(*texts, end="stop"):
    chunks = [AIMessageChunk(text, id="m") for text in texts]
    if end:
        chunks.append(AIMessageChunk("", id="m", response_metadata={"finish_reason": end}))
    return chunks


async def test_a_request_that_is_bad_either_way_is_raised_and_says_nothing_of_streaming():
    server = Server(refused(), whole=refused(422))
    chat = Chat(server)
    for _ in range(2):
        with pytest.raises(ScriptedHttpError, match="422"):
            await chat.reply(REQUEST, {}, print)
    assert server.calls == ["stream", "whole"] * 2


@pytest.mark.parametrize(
    "error", [refused(401), refused(429), refused(500), ConnectionError("reset")], ids=str
)
async def test_an_error_that_is_not_about_streaming_is_raised_at_once(error):
    server = Server(error)
    with pytest.raises(type(error)):
        await Chat(server).reply(REQUEST, {}, print)
    assert server.calls == ["stream"]


def at_once(status):
    """Be refused by a server that says when to come back: now."""
    return ScriptedHttpError(HttpFault(status, retry_after=0.0))


async def test_further_tries_are_shared_by_both_ways_of_asking():
    server = Server(at_once(501), whole=at_once(429))
    with pytest.raises(ScriptedHttpError, match="429"):
        await Chat(server, retries=2).reply(REQUEST, {}, print)
    assert server.calls == ["stream", "whole", "whole", "whole"]
    assert len(server.calls) == calls_of_reply(2)


async def test_of_a_reply_that_has_begun_nobody_sees_the_beginning_twice():
    told = []
    model = ScriptedModel({"*": always(Reply("one two", fault=Reset(1)))})
    with pytest.raises(ConnectionError):
        await Chat(model, retries=2).reply(REQUEST, {}, told.append)
    assert (len(model.calls), told) == (1, ["one"])


async def test_a_server_that_ignores_the_wish_to_stream_is_asked_for_the_whole():
    server = Server([])
    assert (await Chat(server).reply(REQUEST, {}, print)).text
    assert server.calls == ["stream", "whole"]


async def test_a_character_that_a_server_cut_in_two_is_joined_again():
    told = []
    message = await Chat(Server(pieces("a\ud83d", "\ude00b"))).reply(REQUEST, {}, told.append)
    assert (message.text, "".join(told)) == ("a\U0001f600b", "a\U0001f600b")


async def test_a_piece_of_another_role_becomes_a_message_of_the_model():
    chunks = [HumanMessageChunk(text) for text in ("Hel", "lo")]
    message = await Chat(Server(chunks)).reply(REQUEST, {}, print)
    assert (type(message), message.text) == (AIMessage, "Hello")


async def test_a_server_that_drops_whole_replies_is_streamed_from_then_on():
    server = Server(pieces("streamed"), whole=ConnectionResetError("gone"))
    chat = Chat(server, retries=1)
    assert (await chat.reply(REQUEST, {})).text == "streamed"
    assert (await chat.reply(REQUEST, {})).text == "streamed"
    assert server.calls == ["whole", "stream", "stream"]


async def test_a_server_that_is_busy_with_whole_replies_is_not_streamed_for_that():
    server = Server(pieces("streamed"), whole=at_once(429))
    chat = Chat(server, retries=1)
    with pytest.raises(ScriptedHttpError):
        await chat.reply(REQUEST, {})
    assert server.calls == ["whole", "whole"]


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_reply_that_does_not_end_is_broken_off(is_heard):
    endless = "x" * (LONGEST_REPLY // 2 + 1)
    chat = Chat(Server(pieces(endless, endless, endless), whole=2 * endless), retries=1)
    with pytest.raises(ReplyTooLongError, match="2,000,000"):
        await chat.reply(REQUEST, {}, [].append if is_heard else None)


class Endless(Server):
    """A model whose stream goes on with the same piece."""

    async def astream(self, *args, **kwargs):
        while True:
            yield self._streamed


@pytest.mark.parametrize("text", ["", "a"])
async def test_a_stream_of_next_to_nothing_is_broken_off_before_it_fills_the_memory(text):
    with pytest.raises(ReplyTooLongError):
        await Chat(Endless(AIMessageChunk(text))).reply(REQUEST, {}, lambda _: None)


@pytest.mark.parametrize("error", [TypeError("null"), AttributeError("get"), KeyError("choices")])
async def test_an_answer_that_a_client_cannot_read_is_a_server_that_may_be_asked_again(error):
    with pytest.raises(ValueError, match="the server sent no reply") as raised:
        await Chat(Client(refused(), whole=error)).reply(REQUEST, {})
    assert is_transient(raised.value)
    with pytest.raises(type(error)):
        await Chat(Server(refused(), whole=error)).reply(REQUEST, {})


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_checker_that_fails_is_told_and_says_nothing_of_streaming(is_async):
    def failing(chunks):
        raise ValueError("no such key")

    async def failing_later(chunks):
        async for _ in chunks:
            failing(chunks)
        return False

    server = Server(pieces("Hello."))
    chat, toolset = Chat(server), Toolset((), checker=failing_later if is_async else failing)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"stream_tool_call_checker.*no such key"):
            await chat.reply(REQUEST, {}, print, toolset)
    # What fails at once has not even begun the stream.
    assert server.calls == ["stream", "stream"] * is_async


async def test_an_error_of_the_stream_that_a_checker_hears_is_the_servers():
    async def waits(chunks):
        return not [chunk async for chunk in chunks]

    model = ScriptedModel({"*": always(Reply("one two", fault=Reset(1)))})
    with pytest.raises(ConnectionError, match="reset in mid-reply"):
        await Chat(model).reply(REQUEST, {}, print, Toolset((), checker=waits))


async def test_a_reply_whose_server_failed_in_the_middle_is_a_broken_connection():
    failed = Reply("Half a", finish_reason="error")
    for on_text in (None, print):
        with ScriptedModel({"*": failed}) as model, pytest.raises(ConnectionError, match="error"):
            await Chat(model).reply(REQUEST, {}, on_text)
