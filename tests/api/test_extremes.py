"""Odd ids in every address, odd values in every query, from the table of routes: refused, without a trace."""

from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from fairlead.api.server import ROUTES
from fairlead.api.table import Route
from fairlead.checks import NAME
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import BODIES, NO_TASK
from tests.api.serving import Gateway
from tests.api.test_abuse import memory_of
from tests.store.namespace import everything

VALUES = [
    *(
        "",
        " ",
        "0",
        "-1",
        "-0",
        "1e308",
        "-1e308",
        "5e-324",
        "NaN",
        "Infinity",
        "0x10",
        "1_000",
        "1.5",
        "01",
        "٣",
    ),
    *(str(2**31), str(2**53 + 1), str(2**63), str(2**64), "9" * 5000, "-" + "9" * 5000),
    *(
        "true",
        "null",
        "[]",
        "{}",
        "{}:*",
        "*",
        "a\nb",
        "\0",
        "\ud7ff",
        "\U0001f600",
        "x" * 60_000,
        "../../etc",
        "%",
    ),
]
IDS = [
    *(
        "{}:*",
        "{fl:default}:meta",
        "*",
        "?",
        "[a-z]",
        "a\nb",
        "a\r\nX: y",
        "\0",
        "a\0b",
        "%",
        "%25",
        "..",
        "../meta",
    ),
    *(
        "meta",
        "keys",
        "'",
        '"',
        "a b",
        "-",
        "é",
        "\u202e",
        "x" * 201,
        "x" * 10_000,
        NO_TASK + "\n",
        NO_TASK[:-1],
    ),
]
WITH_IDS = [route for route in ROUTES if "{" in route.path]
QUERIES = [
    (route, field.name) for route in ROUTES for field in msgspec.structs.fields(route.query) if route.query
]


def summary(answer: httpx.Response) -> str:
    return (
        f"{answer.request.method} {str(answer.request.url)[:200]}: {answer.status_code} {answer.text[:300]}"
    )


def is_clear(answer: httpx.Response) -> bool:
    """Done, or refused with a problem that says what to do; never a server error."""
    return answer.status_code < 400 or (answer.status_code < 500 and bool(answer.json()["detail"]))


#: What the gateway, its caretaker and its estimator note by the way, and the record of what was asked for.
NOTES = ("caretaker", "meta", "curves", "learnt", "samples", "lags", "served", "audit")


async def lasting(store: Store) -> dict[str, Any]:
    content = await everything(store)
    return {name: held for name, held in content.items() if name not in NOTES}


def path_of(route: Route, one: str) -> str:
    """All of its ids are this one."""
    return "/".join(quote(one, safe="") if part.startswith("{") else part for part in route.path.split("/"))


async def test_an_odd_id_is_refused_and_touches_nothing(
    api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests
) -> None:
    for route in WITH_IDS:
        with subtests.test(route=route):
            await store.submit_one(NewTask(task_type="echo"))
            await store.limits.set("gpu", Slots(limit=1))
            await store.workers.register("w")
            await store.limits.acquire("gpu", lease_id="l")
            before = await lasting(store)
            body = BODIES.get(route.body.__name__, {}) if route.body else None
            makes_it = route.method in ("PUT", "POST") and route.path.endswith("{name}")
            for one in IDS:
                if makes_it and NAME.fullmatch(one):
                    continue  # as good a name as any
                # the client would take the dots for a folder above, as browsers do
                answer = await api.request(
                    route.method, path_of(route, one).replace("..", "%2E%2E"), json=body
                )
                assert is_clear(answer), summary(answer)
                assert answer.status_code >= 400 or NAME.fullmatch(one), summary(answer)
            assert await lasting(store) == before


async def test_an_extreme_value_in_a_query_is_refused_or_harmless(
    api: httpx.AsyncClient, gateway: Gateway, subtests: pytest.Subtests
) -> None:
    for route, field in QUERIES:
        with subtests.test(route=route, field=field):
            path = path_of(route, NO_TASK)
            before = memory_of(gateway)
            for value in VALUES:
                answer = await api.request(route.method, f"{path}?{field}={quote(value, safe='')}")
                assert is_clear(answer), summary(answer)
                if answer.status_code == 422:
                    assert {one["field"] for one in answer.json()["errors"]} == {field}, summary(answer)
            assert memory_of(gateway) - before < 50
