"""Routes of chat clients: a team is a model of OpenAI's API."""

from functools import partial

from openai.types import Model
from openai.types.chat import ChatCompletion
from starlette.responses import Response

from replan.server.doors import chat_door
from replan.server.doors.chat_wire import ChatBody, ModelList
from replan.server.exchange import Exchange
from replan.server.web import Called, api_router, needs, problems, streams

_ERROR = {"schema": {"type": "object", "required": ["error"]}}

router = api_router(problems("application/json", _ERROR))


@router.get("/v1/models", summary="List the teams as models")
async def models(call: Called) -> ModelList:
    """List the teams as models."""
    return ModelList(data=tuple(map(_model, call.served.runtimes)))


@router.get("/v1/models/{model}", summary="Describe a team as a model")
async def model(call: Called, model: str) -> Model:
    """Describe a team as a model."""
    return _model(call.served.team_at(model, "model"))


def _model(team: str) -> Model:
    return Model(id=team, object="model", created=0, owned_by="replan")


@router.post(
    "/v1/chat/completions",
    summary="Answer a conversation",
    response_model=ChatCompletion,
    response_model_exclude_unset=True,
    responses=streams(),
    **needs("run"),
)
async def complete(call: Called, body: ChatBody) -> ChatCompletion | Response:
    """Answer the newest message of a conversation."""
    body.check()
    exchange = Exchange(
        served=call.served,
        who=call.who,
        team=call.served.team_at(body.model, "model"),
        door="chat",
        next_key=lambda _, reply: chat_door.next_key(body, reply),
    )
    begin = partial(chat_door.begin, exchange, body, call.idempotency_key)
    if body.stream:
        return await exchange.stream(begin, partial(chat_door.pieces, exchange, body))
    return await chat_door.completion(exchange, body, await begin())
