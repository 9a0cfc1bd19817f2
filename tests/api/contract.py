"""Every answer that a test gets is held to the table of routes: its status, and the shape of its body."""

import re
from typing import Any

import httpx
import msgspec

from fairlead.api.openapi import openapi_of
from fairlead.api.server import ROUTES
from fairlead.api.table import Route
from fairlead.shapes.problem import ProblemAnswer

PAGES = openapi_of(ROUTES)["paths"]
PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", route.path)), route) for route in ROUTES]


def route_of(method: str, path: str) -> Route | None:
    for pattern, route in PATTERNS:
        if route.method == method and pattern.fullmatch(path):
            return route
    return None


async def hold_to_contract(answer: httpx.Response) -> None:
    await answer.aread()
    route = route_of(answer.request.method, answer.request.url.path)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = shaped(answer.json(), ProblemAnswer)
        assert problem.status == answer.status_code
        assert problem.type == f"urn:fairlead:problem:{problem.code}"
        assert problem.errors or (problem.status != 422 and problem.detail.endswith(".")), problem
    elif route:
        assert answer.headers["content-type"] == route.media
        if route.answer is not bytes:
            shaped(answer.text if route.answer is str else answer.json(), route.answer)
    if route:
        documented = PAGES[route.path][route.method.lower()]["responses"]
        assert str(answer.status_code) in documented, f"{route.method} {route.path}: {answer.text}"


def shaped(answer: Any, kind: Any) -> Any:
    """As this type, with nothing missing and nothing beside it."""
    known = msgspec.convert(answer, kind)
    assert _is_part(answer, msgspec.to_builtins(known)), (answer, known)
    return known


def _is_part(answer: Any, known: Any) -> bool:
    if isinstance(answer, dict):
        return all(name in known and _is_part(value, known[name]) for name, value in answer.items())
    if isinstance(answer, list):
        return all(_is_part(one, other) for one, other in zip(answer, known, strict=True))
    return True
