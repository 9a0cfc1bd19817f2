"""The pages about the routes, generated from them: OpenAPI for programs, and a list for people."""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from fairlead import __version__, errors
from fairlead.api import problems
from fairlead.api.endpoint import JSON, SECURITY, Headers, encode, send_bytes
from fairlead.api.table import Route
from fairlead.shapes.problem import ProblemAnswer
from fairlead.shapes.worker import OneResult

NAMESPACE_PARAMETER = {
    "name": "Fairlead-Namespace",
    "in": "header",
    "description": "Of several namespaces, the one that a request without a key is about.",
    "schema": {"type": "string"},
}
BINARY = {"type": "string", "format": "binary"}
REF = "#/components/schemas/{name}"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top }
:root { color-scheme: light dark }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none'"
HTML: Headers = [
    (b"content-type", b"text/html; charset=utf-8"),
    *((name, POLICY.encode() if name == b"content-security-policy" else value) for name, value in SECURITY),
]


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
            "parameters": {"namespace": NAMESPACE_PARAMETER},
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
        operation["parameters"].append({"$ref": "#/components/parameters/namespace"})
        operation["security"] = [{"key": [route.scope]}]
    if route.body:
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": {"schema": schemas[route.body]}},
        }
    if route.body_media:
        content = {route.body_media: {"schema": BINARY}}
        operation["requestBody"] = {"required": True, "content": content}
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
    answer = {route.media: {"schema": BINARY if route.answer is bytes else schemas[route.answer]}}
    responses: dict[str, Any] = {str(route.status): {"description": route.summary, "content": answer}}
    if route.status == 201:
        responses["200"] = {"description": "The same answer as to the first request.", "content": answer}
    if route.streams and route.answer is not bytes:
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
        usual += [errors.UnknownNamespace]
    if route.body:
        usual += [problems.MalformedJson, problems.NotJson, problems.BodyTooLarge, problems.BodyTooSlow]
        usual += [problems.Overloaded]
    found: dict[int, list[str]] = {}
    for kind in (*usual, *route.refusals):
        found.setdefault(kind.http_status, []).append((kind.__doc__ or "").strip())
    return found


class Page:
    def __init__(self, body: bytes, headers: Headers) -> None:
        self._body = body
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 200, self._body, self._headers)


def make_pages(routes: Sequence[Route]) -> dict[str, Page]:
    return {
        "/openapi.json": Page(encode(openapi_of(routes)), JSON),
        "/docs": Page(_docs(routes).encode(), HTML),
    }


def _docs(routes: Sequence[Route]) -> str:
    rows = "".join(
        f"<tr><td>{route.method}</td><td><code>{escape(route.path)}</code></td><td>{escape(route.summary)}</td>"
        f"<td>{route.scope or '-'}</td></tr>\n"
        for route in routes
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Fairlead {__version__}</title>\n'
        f"<style>{STYLE}</style>\n<h1>Fairlead {__version__}</h1>\n"
        '<p>The bodies, answers and errors are in <a href="/openapi.json">openapi.json</a>.</p>\n'
        f"<table>\n<tr><th>method<th>path<th>what it does<th>scope</tr>\n{rows}</table>\n</html>\n"
    )
