"""The requests of OpenAI's chat completions, as far as a team can keep to them, and its errors."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from openai.types import Model
from pydantic import ConfigDict, Field, JsonValue
from starlette.responses import Response

from replan.base.errors import InputError
from replan.server.bodies import ApiModel
from replan.server.problems import RefusedError, bad_field, retry_headers
from replan.state.conversation.conversation import client_instructions

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"no_token": "invalid_api_key", "used_up": "insufficient_quota"}
_SERVER = 500
_MOST_PARTS = 1_000  # of a message


class ChatPart(ApiModel):
    """A part of a message.

    Attributes:
        type: A text or a picture.
        text: The text.
        image_url: The picture: `{"url": ...}`.
    """

    model_config = ConfigDict(extra="allow")

    type: Literal["text", "image_url"]
    text: str = ""
    image_url: dict[str, JsonValue] | None = None

    @property
    def block(self) -> dict[str, Any]:
        """The part as LangChain has it."""
        if self.type == "text":
            return {"type": "text", "text": self.text}
        return {"type": "image_url", "image_url": self.image_url or {}}


class ChatMessage(ApiModel):
    """A message of a conversation.

    Attributes:
        role: Who said it.
        content: A text, or parts.
    """

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[tuple[ChatPart, ...], Field(max_length=_MOST_PARTS)] | None = None

    @property
    def text(self) -> str:
        """The text of it."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        return "\n".join(part.text for part in self.content if part.type == "text")

    def check(self, field: str) -> None:
        """Refuse parts of it that would be lost.

        Raises:
            RefusedError: Names the field, which begins with the one of the message.
        """
        parts = self.content if isinstance(self.content, tuple) else ()
        for number, part in enumerate(parts):
            place = f"{field}.content[{number}]"
            if part.type == "text":
                continue
            if self.role != "user":
                fix = "Send it in a message of the user."
                raise bad_field(place, part.type, "only the user sends pictures", fix)
            if not (part.image_url or {}).get("url"):
                fix = 'Give it as {"url": ...}, or leave the part out.'
                raise bad_field(f"{place}.image_url", "", "the picture is missing", fix)

    @property
    def answer(self) -> str:
        """The text of it as an answer to what waits.

        Raises:
            InputError: It has more than a text, which no answer can have.
        """
        if isinstance(self.content, tuple) and any(part.type != "text" for part in self.content):
            raise InputError(
                "An answer is a text, and this one has a picture, so it was not used. Answer with "
                "a text alone, or describe the picture in it."
            )
        return self.text

    @property
    def message(self) -> BaseMessage:
        """The message as the graph takes it; a client's instructions count as the user's words."""
        if self.role == "assistant":
            return AIMessage(self.text)
        if self.role != "user":
            return client_instructions(self.text)
        if isinstance(self.content, tuple):
            return HumanMessage([part.block for part in self.content])
        return HumanMessage(self.text)


class StreamOptions(ApiModel):
    """What a stream contains.

    Attributes:
        include_usage: Whether its last piece has the usage.
    """

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class ChatBody(ApiModel):
    """A request for a chat completion.

    What says how a model samples (`temperature`, `max_tokens`, ...) has no effect: the team's
    models have settings of their own. The reply names such fields. What asks for another form of
    the answer, tools and other numbers of answers are refused.

    Attributes:
        model: The name of a team.
        messages: The conversation; the last message is the user's.
        stream: Whether the answer comes in pieces.
        stream_options: How.
        n: One answer.
        tools: None; the specialists of the team have tools.
        functions: None, as with tools.
        tool_choice: `auto` or `none`.
        logprobs: False.
        modalities: Texts alone.
        response_format: `{"type": "text"}`; an answer of a type is the team's `output_type`.
        reasoning_effort: If it is set, and not `none`, the course of the plan is reported as
            `reasoning_content`.
        metadata: `session_id` names the conversation. The server then keeps what was said in it,
            and reads all messages of the first request, then the newest message alone.
    """

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1, max_length=200)
    messages: tuple[ChatMessage, ...] = Field(min_length=1, max_length=2_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: tuple[JsonValue, ...] | None = None
    functions: tuple[JsonValue, ...] | None = None
    tool_choice: JsonValue = None
    logprobs: bool | None = None
    modalities: tuple[str, ...] | None = None
    response_format: dict[str, JsonValue] | None = None
    reasoning_effort: str | None = None
    metadata: dict[str, str] | None = None

    @property
    def session_id(self) -> str:
        """The name of the conversation, if the client set one."""
        return (self.metadata or {}).get("session_id", "")

    @property
    def unused(self) -> list[str]:
        """The fields that have no effect."""
        names = _extra_names(self)
        for number, message in enumerate(self.messages):
            names += [f"messages[{number}].{name}" for name in _extra_names(message)]
        return names

    @property
    def tells_course(self) -> bool:
        """Whether the course of the plan is reported."""
        return self.reasoning_effort not in (None, "none")

    @property
    def has_usage(self) -> bool:
        """Whether the last piece of a stream has the usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    def check(self) -> None:
        """Refuse parameters that a team does not support.

        Raises:
            RefusedError: Names the field.
        """
        check_no_tools("tools", self.tools)
        check_no_tools("functions", self.functions)
        check_no_tools("tool_choice", self.tool_choice not in (None, "auto", "none"))
        for field, asked_for, reason, fix in self._unsupported():
            if asked_for:
                raise bad_field(field, asked_for, reason, fix)
        for number, message in enumerate(self.messages):
            message.check(f"messages[{number}]")
        newest_of(self.messages)

    def _unsupported(self) -> Iterator[tuple[str, object, str, str]]:
        """What may ask for more than a team does: the field, what it asks for, and what to do."""
        count = None if self.n in (None, 1) else str(self.n)
        yield "n", count, "a team gives one answer", "Leave it out."
        kind = "text" if self.response_format is None else self.response_format.get("type", "none")
        own_form, fix = "a team has its own form of answers", "give the team's host an output_type."
        yield (
            "response_format",
            kind if kind != "text" else None,
            own_form,
            f"Leave it out, or {fix}",
        )
        yield "logprobs", self.logprobs, "a team gives no probabilities", "Leave it out."
        others = [kind for kind in self.modalities or () if kind != "text"]
        yield "modalities", ", ".join(others), "a team answers with a text", "Leave it out."


class ModelList(ApiModel):
    """The teams as models.

    Attributes:
        object: Always `list`.
        data: The teams.
    """

    object: Literal["list"] = "list"
    data: tuple[Model, ...]


def openai_error(refusal: RefusedError) -> dict[str, Any]:
    """A refusal in OpenAI's form."""
    problem = refusal.problem
    status = problem.status
    kind = "server_error" if status >= _SERVER else _TYPES.get(status, "invalid_request_error")
    return {
        "error": {
            "message": refusal.explained,
            "type": kind,
            "param": problem.mistakes[0].field if problem.mistakes else None,
            "code": _CODES.get(problem.code, problem.code),
        }
    }


def openai_error_response(refusal: RefusedError) -> Response:
    """A refusal as an answer in OpenAI's form."""
    status = refusal.problem.status
    # A client of OpenAI knows one status for a request that is wrong.
    status = 400 if status in (413, 421, 422) else status
    content, headers = json.dumps(openai_error(refusal)), retry_headers(refusal)
    return Response(content, status, headers, media_type="application/json")


def _extra_names(read: ApiModel) -> list[str]:
    """The fields that a client set and nothing here reads."""
    return [name for name, value in (read.model_extra or {}).items() if value not in (None, [], {})]


def check_no_tools(field: str, tools: object) -> None:
    """Refuse tools of a client.

    Raises:
        RefusedError: Names the field.
    """
    if tools:
        fix = "Leave it out: the team's specialists have tools of their own."
        raise bad_field(field, "...", "a team takes no tools from outside", fix)


def newest_of(messages: Sequence[ChatMessage]) -> ChatMessage:
    """The last message of a conversation.

    Raises:
        RefusedError: The user has not said it, or it has no text.
    """
    newest = messages[-1] if messages else ChatMessage(role="user")
    if newest.role != "user" or not newest.text.strip():
        problem = "the last message is not the user's, or it is empty"
        fix = "Let a message of the user with a text be the last one."
        raise bad_field("messages", newest.role, problem, fix)
    return newest


def comparable(messages: Sequence[ChatMessage]) -> list[JsonValue]:
    """A conversation as it is recognised: who said what, ignoring blanks."""
    return [[message.role, " ".join(message.text.split())] for message in messages]
