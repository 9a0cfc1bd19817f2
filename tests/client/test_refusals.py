"""What goes wrong between a client and a gateway: each refusal is the error the store would raise."""

import asyncio
from typing import Any

import pytest

from fairlead import errors
from fairlead.api.problems import Forbidden, HttpProblem, Unauthorized, problem_of
from fairlead.client import transport
from fairlead.client.bodies import job_body, task_body
from fairlead.client.client import Client
from fairlead.client.problems import error_of
from fairlead.client.target import Target
from fairlead.client.transport import checked_key
from fairlead.model.job import NewJob
from fairlead.model.reports import Failed
from fairlead.model.task import NewTask
from fairlead.settings import EngineSettings, Settings, Slots
from fairlead.shapes.base import Json
from fairlead.store.store import Store
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway
from tests.client.answering import always, answering, losing_answers, read_request, unreachable_url
from tests.client.conftest import client_of
from tests.refusals import REFUSALS
from tests.store.namespace import claim_one

MADE: dict[type[errors.FairleadError], errors.FairleadError] = {
    errors.InvalidInput: errors.InvalidInput("limits.gpu", "there is no such limit", "unknown_limit"),
    errors.QueueFull: errors.QueueFull("3 tasks wait already.", waiting=3),
    errors.TooManyTypes: errors.TooManyTypes("Tasks of 3 types wait already.", waiting=3),
    errors.RateLimited: errors.RateLimited("Too fast.", retry_after=1.0),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_problem_of_the_gateway_is_the_error_it_was_made_from(kind: type[errors.FairleadError]) -> None:
    error = MADE.get(kind) or kind(f"What is wrong: {kind.code}.")
    again = error_of(problem_of(error, to_operator=True).body)
    assert isinstance(error, type(again))
    assert type(again) is not errors.FairleadError
    assert (again.code, again.message) == (error.code, error.message)
    assert getattr(again, "field", None) == getattr(error, "field", None)
    assert getattr(again, "waiting", None) == getattr(error, "waiting", None)


@pytest.mark.parametrize("kind", [Unauthorized, Forbidden])
def test_the_error_for_a_missing_key_says_how_to_give_one(kind: type[HttpProblem]) -> None:
    error = error_of(problem_of(kind()).body)
    assert isinstance(error, errors.NotAllowed)
    assert kind().message in error.message
    assert "--key, FAIRLEAD_KEY" in error.message


@pytest.mark.parametrize("problem", [{}, {"status": 418}, {"status": 418, "code": "teapot", "detail": 7}])
def test_a_problem_of_another_kind_is_a_plain_error(problem: dict[str, Any]) -> None:
    assert type(error_of(problem)) is errors.FairleadError


def test_an_unknown_code_is_kept() -> None:
    error = error_of({"status": 418, "code": "teapot", "detail": "Short and stout."})
    assert (error.code, error.message) == ("teapot", "Short and stout.")


async def test_a_missing_server_is_not_reachable() -> None:
    with unreachable_url() as url:
        async with client_of(url) as client:
            with pytest.raises(errors.StoreUnavailable, match="is it running"):
                await client.get(NO_TASK)
            with pytest.raises(errors.StoreUnavailable):
                await client.submit_one(NewTask(task_type="a"))


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_proxy_without_a_gateway_is_not_reachable(status: int) -> None:
    async with answering(always(status, b"<html>Bad gateway", "text/html")) as url, client_of(url) as client:
        with pytest.raises(errors.StoreUnavailable, match=str(status)):
            await client.get(NO_TASK)


async def test_a_server_that_is_not_a_gateway_is_named(subtests: pytest.Subtests) -> None:
    for status, body in [
        (200, b"<html>Hello"),
        (200, b"[]"),
        (200, b"\xff"),
        (404, b"Not found"),
        (301, b""),
        (500, b"{}"),
    ]:
        with subtests.test(status=status, body=body):
            async with answering(always(status, body, "text/html")) as url, client_of(url) as client:
                with pytest.raises(errors.InvalidSettings, match="check the URL"):
                    await client.get(NO_TASK)


async def test_an_answer_with_other_json_is_refused() -> None:
    async with answering(always(200, b'{"hello": 1}')) as url, client_of(url) as client:
        for call in (client.stats, client.list_tasks, client.dead_letters.page, client.limits.all):
            with pytest.raises(errors.InvalidSettings, match="of a gateway of this version"):
                await call()
        with pytest.raises(errors.InvalidSettings, match="of a gateway of this version"):
            await client.get(NO_TASK)


async def test_an_answer_that_is_too_large_is_not_read() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    async with answering(endless) as url, client_of(url) as client:
        with pytest.raises(errors.FairleadError, match="larger than 1 MiB"):
            await client.transport.ask(Json, "GET", "/", most=1 << 20)


async def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with answering(drip) as url, client_of(url) as client:
        with pytest.raises(errors.StoreUnavailable):
            await client.transport.ask(Json, "GET", "/", within=0.2)


async def test_a_submit_whose_answer_was_lost_is_one_task(gateway: Gateway, store: Store) -> None:
    async with losing_answers(gateway.url, 2) as url, client_of(url) as client:
        task = NewTask(task_type="a")
        assert (await client.submit_one(task)).task_id == task.task_id
    assert len((await store.list_tasks()).tasks) == 1


async def test_units_whose_answer_was_lost_are_taken_once(gateway: Gateway, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=5))
    async with losing_answers(gateway.url, 1) as url, client_of(url) as client:
        await client.limits.acquire("gpu", units=2)
    assert (await store.limits.get("gpu")).active == 2


async def test_a_cancel_whose_answer_was_lost_is_one(gateway: Gateway, store: Store) -> None:
    task = NewTask(task_type="a")
    await store.submit_one(task)
    async with losing_answers(gateway.url, 1) as url, client_of(url) as client:
        await client.cancel(task.task_id)
    assert (await store.get(task.task_id)).status == "cancelled"


async def test_a_request_that_cannot_be_repeated_is_not_sent_twice(gateway: Gateway, store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="a"))
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    async with losing_answers(gateway.url, 1) as url, client_of(url) as client:
        with pytest.raises(errors.StoreUnavailable):
            await client.replay(task.task_id)
    assert (await store.get(task.task_id)).status == "queued"


def test_an_invalid_address_is_refused(subtests: pytest.Subtests) -> None:
    for url in [
        "http://",
        "http://ann:secret@h",
        "http://h?key=1",
        "http://h:port",
        "http://[x",
        "http://a b",
    ]:
        with subtests.test(url=url):
            with pytest.raises(errors.InvalidSettings, match="http://HOST:PORT") as caught:
                Target(url=url).read_settings()
            assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["flk_ x", "flk_\n", "flk_ü"])
def test_a_key_that_cannot_be_sent_is_refused(key: str) -> None:
    with pytest.raises(errors.InvalidSettings, match="fairlead key create") as caught:
        checked_key(key)
    assert key not in str(caught.value)


def test_only_a_gateway_has_a_client() -> None:
    with pytest.raises(errors.InvalidSettings, match="URL of a gateway"):
        Client(Settings(engine=EngineSettings(url="redis://there")))


def test_a_name_is_never_a_way_to_another_place() -> None:
    assert transport.path("api", "..", "a/b", "ü ?", ".") == "/api/%2E%2E/a%2Fb/%C3%BC%20%3F/%2E"


def test_a_weight_does_not_leave_a_client() -> None:
    with pytest.raises(errors.InvalidInput, match="weight"):
        task_body(NewTask(task_type="echo", weight=3))
    with pytest.raises(errors.InvalidInput, match="weight"):
        job_body(NewJob(feature_name="echo", weight=3))
