"""The OpenAPI page, generated from the routes."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead import __version__, errors
from fairlead.api import problems
from fairlead.api.table import Route
from fairlead.shapes.problem import ProblemAnswer
from fairlead.shapes.worker import OneResult

REF = "#/components/schemas/{name}"


def openapi_of(routes: Sequence[Route]) -> dict[str, Any]:
    kinds: dict[Any, None] = {ProblemAnswer: None, OneResult: None}  # each once, in order
    for route in routes:
        kinds |= {kind: None for kind in (route.body, route.answer, route.query) if kind}
    refs, components = msgspec.json.schema_components(kinds, ref_template=REF)
    schemas = dict(zip(kinds, refs, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairlead",
            "version": __version__,
            "description": "A job gateway for scarce compute.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "flk_..."}},
        },
    }


def _operation(route: Route, schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    room = route.path.strip("/").split("/")
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "tags": [room[2] if room[0] == "api" else room[0]],
        "parameters": [*_path_parameters(route.path), *_query_parameters(route, components)],
        "responses": _responses(route, schemas),
    }
    if route.scope:
        operation["security"] = [{"key": [route.scope]}]
    if route.body:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": schemas[route.body]}},
        }
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    shape = components.get(route.query.__name__, {})
    return [
        {"name": name, "in": "query", "required": name in shape.get("required", ()), "schema": schema}
        for name, schema in shape.get("properties", {}).items()
    ]


def _responses(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    answer = {route.media: {"schema": schemas[route.answer]}}
    responses: dict[str, Any] = {str(route.status): {"description": route.summary, "content": answer}}
    if route.status == 201:
        responses["200"] = {"description": "The same answer as to the first request.", "content": answer}
    if route.streams:
        responses["204"] = {"description": "It has ended, and you have its last message: do not reconnect."}
    for status, words in sorted(_refusals(route).items()):
        problem = {"application/problem+json": {"schema": schemas[ProblemAnswer]}}
        responses.setdefault(str(status), {"description": " ".join(words), "content": problem})
    return responses


def _refusals(route: Route) -> dict[int, list[str]]:
    usual: list[type[errors.FairleadError]] = [problems.InvalidBody]
    if route.scope:
        usual += [problems.WrongHost, problems.ForeignOrigin, problems.Unauthorized, problems.Forbidden]
        usual += [problems.TooManyFailures, errors.StoreUnavailable, errors.StoreFull]
    if route.body:
        usual += [problems.MalformedJson, problems.NotJson, problems.BodyTooLarge, problems.BodyTooSlow]
        usual += [problems.Overloaded]
    found: dict[int, list[str]] = {}
    for kind in (*usual, *route.refusals):
        found.setdefault(problems.status_of(kind), []).append((kind.__doc__ or "").strip())
    return found
