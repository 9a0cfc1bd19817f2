"""Bodies are strict and capped: a refusal names the field, and a refused request leaves no trace."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import NO_TASK, TASKS, WORKERS, HttpWorker, good, refused, submit
from tests.store.namespace import everything

JSON = {"content-type": "application/json"}
MOST = 256 * 1024


def nested(depth: int) -> Any:
    """`depth` objects in each other; the innermost is empty."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


OF_THE_CARETAKER = (
    b"buried_at",
    b"tidied",
    b"tidying",
    b"upkeep_since",
    b"finished_count",
    b"finished_bytes",
)


async def written(store: Store) -> dict[str, Any]:
    """All that clients could have written: the server's own caretaker works whenever it gets to it."""
    found = await everything(store)
    for own in ("caretaker", "samples"):
        found.pop(own, None)
    if "meta" in found:
        fields, runs_out = found["meta"]
        found["meta"] = (
            {name: value for name, value in fields.items() if name not in OF_THE_CARETAKER},
            runs_out,
        )
    return found


async def post(api: httpx.AsyncClient, content: bytes, **headers: str) -> httpx.Response:
    return await api.post(TASKS, content=content, headers={**JSON, **headers})


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": ({"pririty": "high"}, "pririty"),
    "a field of the task that a client may not set": ({"fence": 1}, "fence"),
    "an invalid id": ({"task_id": "order-7"}, "task_id"),
    "another tenant": ({"tenant": "acme"}, "tenant"),
    "no type": ({"task_type": None}, "task_type"),
    "a type of no letters": ({"task_type": ""}, "task_type"),
    "a type with a space": ({"task_type": "a b"}, "task_type"),
    "a type with a line break": ({"task_type": "a\n"}, "task_type"),
    "a type of 201 letters": ({"task_type": "t" * 201}, "task_type"),
    "parameters that are a list": ({"parameters": [1]}, "parameters"),
    "parameters that are nothing": ({"parameters": None}, "parameters"),
    "an unknown priority": ({"priority": "urgent"}, "priority"),
    "a priority as a number": ({"priority": 1}, "priority"),
    "a user of no letters": ({"user_id": ""}, "user_id"),
    "a user with a NUL": ({"user_id": "a\x00"}, "user_id"),
    "a user of 201 letters": ({"user_id": "u" * 201}, "user_id"),
    "capabilities as text": ({"required_capabilities": "gpu"}, "required_capabilities"),
    "17 capabilities": ({"required_capabilities": [f"c{i}" for i in range(17)]}, "required_capabilities"),
    "a capability with a comma": ({"required_capabilities": ["a", "b,c"]}, "required_capabilities[1]"),
    "limits as a list": ({"limits": ["gpu"]}, "limits"),
    "9 limits": ({"limits": {f"l{i}": 1 for i in range(9)}}, "limits"),
    "a limit of no name": ({"limits": {"": 1}}, "limits"),
    "no units": ({"limits": {"gpu": 0}}, "limits[...]"),
    "half a unit": ({"limits": {"gpu": 0.5}}, "limits[...]"),
    "a true unit": ({"limits": {"gpu": True}}, "limits[...]"),
    "a group of 0": ({"concurrency_group": "g", "concurrency_limit": 0}, "concurrency_limit"),
    "no timeout at all": ({"timeout_seconds": 0}, "timeout_seconds"),
    "a timeout in the past": ({"timeout_seconds": -1}, "timeout_seconds"),
    "a timeout of a century": ({"timeout_seconds": 1e12}, "timeout_seconds"),
    "a timeout as text": ({"timeout_seconds": "5"}, "timeout_seconds"),
    "a timeout beyond all numbers": ({"timeout_seconds": 10**400}, "timeout_seconds"),
    "1,001 retries": ({"max_retries": 1001}, "max_retries"),
    "half a retry": ({"max_retries": 0.5}, "max_retries"),
    "a delay below 0": ({"delay_seconds": -0.1}, "delay_seconds"),
    "a time without an offset": ({"run_at": "2100-01-31T12:00:00"}, "run_at"),
    "an invalid time": ({"run_at": "tomorrow"}, "run_at"),
    "a time before all": ({"run_at": "0001-01-01T00:00:00Z"}, "run_at"),
    "a time and a delay": ({"run_at": "2100-01-31T12:00:00Z", "delay_seconds": 1}, "run_at"),
    "an idempotency key of 201": ({"idempotency_key": "k" * 201}, "idempotency_key"),
    "a trace with a line break": ({"trace_id": "a\nb"}, "trace_id"),
    "parameters of 33 levels": ({"parameters": nested(33)}, "parameters" + 32 * ".a"),
}


async def test_a_bad_field_is_named(api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests) -> None:
    for case in FIELDS:
        with subtests.test(case=case):
            options, field = FIELDS[case]
            before = await written(store)
            body = {"task_type": "echo", **options}
            answer = await api.post(
                TASKS, json={name: value for name, value in body.items() if value is not ...}
            )
            refused(answer, 422, "invalid_input", field)
            assert await written(store) == before


async def test_a_missing_field_is_named(api: httpx.AsyncClient) -> None:
    refused(await api.post(TASKS, json={}), 422, "invalid_input", "task_type")


async def test_32_levels_and_256_kib_are_accepted(api: httpx.AsyncClient) -> None:
    await submit(api, parameters=nested(32))
    start, end = b'{"task_type":"echo","parameters":{"a":"', b'"}}'
    body = start + b"x" * (MOST - len(start) - len(end)) + end
    assert len(body) == MOST
    good(await post(api, body), 201)
    refused(await post(api, body + b" "), 413, "body_too_large")


async def test_a_body_that_is_not_json_is_refused(
    api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests
) -> None:
    for content in [
        b"",
        b"{",
        b"{'task_type': 'echo'}",
        b'{"task_type": "echo"} more',
        b'{"task_type": "echo", "delay_seconds": NaN}',
        b'{"task_type": "echo", "delay_seconds": -Infinity}',
        b'{"task_type": "echo", "parameters": {"a": NaN}}',
        b'{"task_type": "echo", "parameters": {"a": "\\ud800"}}',
        b'{"task_type": "echo", "parameters": {"a": "\xff"}}',
        b'{"task_type": "echo", "parameters": {"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
        b'\xef\xbb\xbf{"task_type": "echo"}',
        '{"task_type": "echo"}'.encode("utf-16"),
    ]:
        with subtests.test(content=content):
            refused(await post(api, content), 400, "malformed_json")


async def test_a_body_that_is_not_an_object_is_refused(
    api: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for content in [b"[]", b'"task"', b"null", b"1", b"true"]:
        with subtests.test(content=content):
            refused(await post(api, content), 422, "invalid_input", "body")


@pytest.mark.parametrize("digits", [b"1e999", b"-1e999", b"1" * 400])
async def test_a_number_beyond_all_numbers_is_refused(api: httpx.AsyncClient, digits: bytes) -> None:
    answer = await post(api, b'{"task_type": "echo", "delay_seconds": ' + digits + b"}")
    refused(answer, 422, "invalid_input", "delay_seconds")


async def test_another_type_of_content_is_refused(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
        "",
    ]:
        with subtests.test(media=media):
            answer = await post(api, b'{"task_type": "echo"}', **{"content-type": media})
            refused(answer, 415, "unsupported_media_type")


async def test_json_with_a_charset_is_json(api: httpx.AsyncClient) -> None:
    answer = await post(api, b'{"task_type": "echo"}', **{"content-type": "Application/JSON; charset=utf-8"})
    good(answer, 201)


# Sizes, before anything is parsed


async def test_a_length_over_the_cap_is_refused_unread(api: httpx.AsyncClient) -> None:
    refused(await post(api, b"x" * (MOST + 1)), 413, "body_too_large")


async def test_a_body_without_a_length_is_refused_when_it_is_over_the_cap(api: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 64 * MOST:
            sent += 1024
            yield b"x" * 1024

    answer = await api.post(TASKS, content=endless(), headers=JSON)
    refused(answer, 413, "body_too_large")


async def test_a_body_in_chunks_is_read_as_one(api: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b'{"task', b'_type": ', b'"echo"', b"}"):
            yield piece

    good(await api.post(TASKS, content=pieces(), headers=JSON), 201)


async def test_a_batch_may_be_larger_and_is_capped_too(api: httpx.AsyncClient) -> None:
    tasks = [{"task_type": "echo", "parameters": {"a": "x" * 100_000}} for _ in range(4)]
    assert len(good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]) == 4
    answer = await api.post(f"{TASKS}/batch", content=b"x" * (16 * 1024 * 1024 + 1), headers=JSON)
    assert "16 MiB" in refused(answer, 413, "body_too_large")["detail"]


async def test_a_result_over_256_kib_is_too_large_alone_and_among_others(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    for _ in range(2):
        await submit(api)
    one, two = await worker.poll()
    refused(await worker.complete(one, "x" * MOST), 413, "too_large", "result")
    results = [
        {"task_id": task["task_id"], "status": "completed", "result": result}
        for task, result in ((one, "x" * MOST), (two, "x"))
    ]
    answer = good(await worker.post("result", results=results))
    assert [row.get("code") for row in answer["results"]] == ["too_large", None]


# Queries

QUERIES = {
    "limit=0": "limit",
    "limit=1001": "limit",
    "limit=-1": "limit",
    "limit=1.5": "limit",
    "limit=": "limit",
    "limit=" + "9" * 5000: "limit",
    "limit=0x10": "limit",
    "limit=NaN": "limit",
    "limit=%00": "limit",
    "limit=1&limit=2": "limit",
    "status=waiting": "status",
    "priority=urgent": "priority",
    "task_type=a%20b": "task_type",
    "task_type=": "task_type",
    "user_id=" + "u" * 201: "user_id",
    "user_id=%0A": "user_id",
    "cursor=next": "cursor",
    "cursor=" + "9" * 99: "cursor",
    "cursor=-1": "cursor",
    "nonsense=1": "nonsense",
    "user_id=%FF": "query",
}


async def test_a_bad_query_is_named(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for query in QUERIES:
        with subtests.test(query=query):
            refused(await api.get(f"{TASKS}?{query}"), 422, "invalid_input", QUERIES[query])


async def test_queries_of_other_routes_are_as_strict(api: httpx.AsyncClient) -> None:
    for path, field in (
        (f"{TASKS}/{NO_TASK}?limit=1", "limit"),
        ("/api/v1/dlq?limit=1001", "limit"),
        ("/api/v1/dlq?cursor=-5", "cursor"),
        ("/api/v1/dlq?cursor=9999999999", "cursor"),
        ("/task?priority=medium", "priority"),
        ("/healthz?deep=1", "deep"),
    ):
        refused(await api.get(path), 422, "invalid_input", field)
    answer = await api.delete("/api/v1/limits/gpu/leases/x?fence=-1")
    refused(answer, 422, "invalid_input", "fence")


# Other bodies

OTHERS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "a worker of no capacity": ("POST", "register", {"capacity": 0}, "capacity"),
    "a worker of a million": ("POST", "register", {"capacity": 1_000_000}, "capacity"),
    "a reserve of more than all": ("POST", "register", {"capacity": 2, "reserve": 3}, "reserve"),
    "a poll for less than nothing": ("POST", "w/poll", {"available_capacity": -1}, "available_capacity"),
    "a poll of no room": ("POST", "w/poll", {}, "available_capacity"),
    "a poll of a minute": ("POST", "w/poll", {"available_capacity": 1, "wait_seconds": 31}, "wait_seconds"),
    "a result of nothing": ("POST", "w/result", {}, "task_id"),
    "a result without an end": ("POST", "w/result", {"task_id": NO_TASK}, "task_id"),
    "a result of another word": ("POST", "w/result", {"task_id": NO_TASK, "status": "done"}, "status"),
    "one and many": ("POST", "w/result", {"task_id": NO_TASK, "results": []}, "results"),
    "a fence of 0": ("POST", "w/result", {"task_id": NO_TASK, "status": "failed", "fence": 0}, "fence"),
    "a load below 0": ("POST", "w/heartbeat", {"current_load": -1}, "current_load"),
    "an unknown state": ("POST", "w/heartbeat", {"status": "dead"}, "status"),
    "more than all": (
        "POST",
        "w/heartbeat",
        {"progress": {"t": {"fraction": 1.5}}},
        "progress[...].fraction",
    ),
    "nothing to give back": ("POST", "w/release", {"task_ids": []}, "task_ids"),
}


async def test_a_bad_field_of_a_worker_is_named(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for case in OTHERS:
        with subtests.test(case=case):
            method, path, body, field = OTHERS[case]
            refused(await api.request(method, f"{WORKERS}/{path}", json=body), 422, "invalid_input", field)
