"""Random variations of valid bodies: every one is answered, and never with a server error."""

import asyncio
import copy
import json
import os
import random
from typing import Any

import httpx
import pytest

from fairlead.api.server import ROUTES
from tests.api.contract import route_of
from tests.api.requests import NO_TASK, TASKS, WORKERS, good
from tests.api.serving import Gateway
from tests.api.test_abuse import memory_of

CASES = int(os.environ.get("FAIRLEAD_FUZZ", "1000"))
AT_ONCE = 16
WORKER = f"{WORKERS}/{NO_TASK}"
LEASES = "/api/v1/limits/gpu/leases"

GOOD: list[tuple[str, str, dict[str, Any]]] = [
    (
        "POST",
        TASKS,
        {
            "task_type": "echo",
            "parameters": {"a": [1, {"b": None}]},
            "priority": "high",
            "user_id": "ann",
            "required_capabilities": ["gpu"],
            "limits": {"gpu": 1},
            "concurrency_group": "g",
            "concurrency_limit": 3,
            "timeout_seconds": 5,
            "max_retries": 1,
            "max_wait_seconds": 9,
            "delay_seconds": 1,
            "idempotency_key": "k",
            "trace_id": "t",
        },
    ),
    ("POST", f"{TASKS}/batch", {"tasks": [{"task_type": "echo"}, {"task_type": "draw", "priority": "low"}]}),
    ("POST", f"{WORKERS}/register", {"capabilities": ["gpu"], "capacity": 3, "reserve": 1, "name": "n"}),
    ("POST", f"{WORKER}/poll", {"available_capacity": 1, "capabilities": ["gpu"], "request_id": "r"}),
    ("POST", f"{WORKER}/result", {"task_id": NO_TASK, "status": "completed", "result": {"a": 1}, "fence": 1}),
    ("POST", f"{WORKER}/result", {"results": [{"task_id": NO_TASK, "status": "failed", "error": {}}]}),
    ("POST", f"{WORKER}/heartbeat", {"current_load": 1, "progress": {NO_TASK: {"fraction": 0.5}}}),
    ("POST", f"{WORKER}/release", {"task_ids": [NO_TASK]}),
    ("POST", f"{WORKER}/stall", {"request_id": "s", "begun": [1]}),
    ("PUT", "/api/v1/limits/gpu", {"limit": 3}),
    ("POST", "/api/v1/session", {"key": "flk_abcdefgh_nonsense"}),
    ("PUT", "/api/v1/limits/api", {"rate": "60/min", "burst": 10}),
    ("PUT", "/api/v1/task-types/echo", {"paused": False}),
    ("POST", "/internal/crons/nightly", {"schedule": "0 3 * * *", "timezone": "Europe/Berlin"}),
    ("POST", LEASES, {"lease_seconds": 0.1, "units": 1, "holder": "h", "lease_id": "l"}),
    ("POST", f"{LEASES}/l/renew", {"lease_seconds": 1, "fence": 1}),
    ("POST", "/api/v1/dlq/replay", {"task_type": "echo", "limit": 10}),
    ("POST", "/api/v1/dlq/purge", {"task_type": "echo", "limit": 10}),
    ("POST", f"/api/v1/dlq/{NO_TASK}/replay", {"parameters": {"a": 1}}),
    ("POST", "/api/v1/simulations", {"seconds": 60, "slots": 2, "limits": {"gpu": {"limit": 3}}}),
    ("POST", f"{WORKER}/wait", {"seconds": 0}),
    ("POST", f"{WORKER}/shortened", {"fences": {NO_TASK: 1}}),
    ("POST", f"{WORKER}/frames", {"task_id": NO_TASK, "fence": 1, "after": 1}),
    ("POST", f"{TASKS}/{NO_TASK}/frames", {"frame": {"line": "a"}}),
    ("POST", f"{WORKER}/extend", {"task_id": NO_TASK, "seconds": 5, "fence": 1}),
    (
        "POST",
        f"{WORKER}/progress",
        {"reports": [{"task_id": NO_TASK, "fraction": 0.5, "chunks": [1], "first": 1, "fence": 1}]},
    ),
    (
        "POST",
        "/api/v1/jobs",
        {
            "feature_name": "story",
            "input_data": {"a": 1},
            "user_id": "ann",
            "priority": "low",
            "max_wait_seconds": 9,
            "idempotency_key": "j",
        },
    ),
    (
        "PUT",
        "/internal/declarations",
        {
            "types": {"echo": {"limits": {"gpu": 1}, "max_retries": 1}},
            "limits": {"gpu": {"limit": 3}},
            "pipelines": {"story": [["echo"], ["draw", "echo"]]},
        },
    ),
    ("POST", "/internal/declarations/confirm", {"types": ["echo"], "pipelines": ["story"]}),
    (
        "POST",
        "/internal/crons/nightly/tick",
        {
            "previous": "2026-01-31T12:00:00Z",
            "tick": "2026-01-31T12:01:00Z",
            "task": {"task_type": "echo", "priority": "low"},
        },
    ),
]
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64, 10**400),
    *(
        "",
        " ",
        "\x00",
        "a\nb",
        "*",
        "{}:*",
        "a" * 201,
        "\u202e",
        "\U0001f600",
        "é" * 100,
        "../..",
        "NaN",
        "1",
    ),
    *("<script>", "%00", "' or 1=1", "${x}", "high", NO_TASK, "2100-01-01T00:00:00Z"),
    *([], {}, [[]], [None], {"": 1}, {"a": 1}, {"task_type": "x"}, list(range(1100)), ["x"] * 20),
]


def spoiled(rng: random.Random, body: Any) -> Any:
    """A copy with something at some place in it replaced, added or taken out."""
    body = copy.deepcopy(body)
    places: list[Any] = [body]
    for place in places:
        inner = place.values() if isinstance(place, dict) else place
        places += [one for one in inner if isinstance(one, dict | list)]
    place, odd = rng.choice(places), copy.deepcopy(rng.choice(ODD))
    if isinstance(place, dict):
        name = rng.choice([*place, "", "unknown", "a.b", "__class__"])
        if rng.random() < 0.15:
            place.pop(name, None)
        else:
            place[name] = odd
    else:
        place.insert(rng.randint(0, len(place)), odd)
    return body


def written(rng: random.Random, body: Any) -> bytes:
    """As JSON; now and then with bytes lost, doubled or replaced."""
    data = bytearray(json.dumps(body, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass"))
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        at = rng.randrange(len(data) or 1)
        data[at : at + rng.randint(0, 3)] = rng.choice(
            [b"", b"\x00", b"\xff", b"NaN", b"[[[[", b'"', b"\\ud800"]
        )
    return bytes(data)


def test_every_route_with_a_body_is_among_them() -> None:
    known = {(method, route.path) for method, path, _ in GOOD if (route := route_of(method, path))}
    assert known == {(route.method, route.path) for route in ROUTES if route.body}


@pytest.mark.timeout(300)
async def test_no_body_is_answered_with_an_error_of_the_server(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    before = memory_of(gateway)
    statuses: dict[int, int] = {}

    async def send(number: int) -> None:
        method, path, body = rng.choice(GOOD)
        for _ in range(rng.choice([1, 1, 2, 3])):
            body = spoiled(rng, body)
        content = written(rng, body)
        answer = await api.request(
            method, path, content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code < 500, (number, method, path, content, answer.text)
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1

    for first in range(0, CASES, AT_ONCE):
        await asyncio.gather(*(send(number) for number in range(first, first + AT_ONCE)))
    print("answers", statuses)
    assert {201, 400, 422} <= statuses.keys()
    assert memory_of(gateway) - before < 100
    good(await api.get("/readyz"))
