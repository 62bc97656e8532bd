"""The OpenAPI document, generated from the models of requests and answers."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from replan.server.bodies import EmptyRequest
from replan.server.endpoints import EVENTS, JSON, PROBLEM, Endpoint
from replan.server.problems import Problem
from replan.values import Value

_AT = "#/components/schemas/{model}"
_OF_OPENAI = {"type": "object", "required": ["error"]}
_PROBLEMS = {
    400: "Not JSON, or not a whole request",
    401: "No valid token",
    403: "Not allowed",
    404: "There is no such thing",
    408: "A request that is too slow",
    409: "It conflicts with the current state",
    413: "Too large a request",
    421: "Another host",
    422: "Mistakes, each with its field and fix",
    429: "A limit of the token",
    500: "The server failed",
    503: "The storage does not answer",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Describe endpoints as OpenAPI 3.1."""
    endpoints = list(endpoints)
    taken = {each.body for each in endpoints} | {each.query for each in endpoints}
    given = {kind for each in endpoints for kind in each.returns.values() if kind} | {Problem}
    kinds: list[Any] = [
        *((each, "validation") for each in sorted(taken, key=_name)),
        *((each, "serialization") for each in sorted(given, key=_name)),
    ]
    refs, schemas = models_json_schema(kinds, ref_template=_AT)
    paths: dict[str, Any] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, refs, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Replan", "version": version("replan")},
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _name(kind: type[BaseModel]) -> str:
    return kind.__name__


def _operation(endpoint: Endpoint, refs: Any, schemas: Any) -> dict[str, Any]:
    answers = {
        str(status): _answer(status, kind, refs) for status, kind in endpoint.returns.items()
    }
    if endpoint.streams:
        content = answers["200"].setdefault("content", {})
        content[EVENTS] = {"schema": {"type": "string"}}
    if endpoint.media_type:
        answers["200"]["content"] = {endpoint.media_type: {"schema": {"type": "string"}}}
    problem = {PROBLEM: {"schema": refs[Problem, "serialization"]}}
    for status, description in _PROBLEMS.items():
        schema = problem if endpoint.error_response is None else {JSON: {"schema": _OF_OPENAI}}
        answers[str(status)] = {"description": description, "content": schema}
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", endpoint.summary.lower()).strip("_"),
        "parameters": [*_in_path(endpoint.path), *_in_query(endpoint, refs, schemas)],
        "responses": answers,
    }
    if endpoint.body is not EmptyRequest:
        body = {JSON: {"schema": refs[endpoint.body, "validation"]}}
        operation["requestBody"] = {"content": body}
    if endpoint.role is None:
        operation["security"] = []
    return operation


def _answer(status: int, kind: type[Value] | None, refs: Any) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if kind is not None:
        response["content"] = {JSON: {"schema": refs[kind, "serialization"]}}
    return response


def _in_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", path)
    text = {"type": "string"}
    return [{"name": name, "in": "path", "required": True, "schema": text} for name in names]


def _in_query(endpoint: Endpoint, refs: Any, schemas: Any) -> list[dict[str, Any]]:
    name = refs[endpoint.query, "validation"]["$ref"].rpartition("/")[2]
    fields = schemas["$defs"][name].get("properties", {})
    return [
        {"name": field, "in": "query", "required": False, "schema": schema}
        for field, schema in fields.items()
    ]
