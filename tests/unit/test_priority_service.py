"""The priority of a user, from a real server that answers, hangs, lies and disconnects."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import pytest

from fairlead.api import priority_service
from fairlead.api.priority_service import MOST_FAILURES, PriorityService, Terms, read_answer
from fairlead.settings import PriorityServiceSettings
from tests.waiting import wait_until

Reply = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Service:
    """A small HTTP server. `reply` handles a request."""

    url: str
    reply: Reply
    requests: list[str] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            self.requests.append(path)
            await self.reply(path, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def says(body: str | bytes, status: str = "200 OK") -> Reply:
    async def reply(_: str, writer: asyncio.StreamWriter) -> None:
        content = body.encode() if isinstance(body, str) else body
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + content)
        await writer.drain()

    return reply


async def hangs(_: str, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def dribbles(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def floods(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" " * 65536)
        await writer.drain()


async def resets(_: str, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def gibberish(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff no HTTP at all\r\n\r\n")
    await writer.drain()


async def breaks_off(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"priority"')
    await writer.drain()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service("", says("high"))
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    made.url = f"http://{host}:{port}/plans/{{user_id}}?of=gold"
    yield made
    server.close()
    for task in asyncio.all_tasks():  # of requests that hang
        if "Service.handle" in repr(task.get_coro()):
            task.cancel()
    await server.wait_closed()


NewClient = Callable[..., PriorityService]


@pytest.fixture
async def new_client(service: Service) -> AsyncIterator[NewClient]:
    made: list[PriorityService] = []

    def make(plans: Mapping[str, float] | None = None, **options: object) -> PriorityService:
        settings = PriorityServiceSettings(**{"url": service.url, "timeout_seconds": 15, **options})  # type: ignore[arg-type]
        made.append(PriorityService(settings, plans))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def priority_of(ask: PriorityService, user_id: str) -> str:
    return (await terms_of(ask, user_id)).priority


async def terms_of(ask: PriorityService, user_id: str) -> Terms:
    return (await ask.terms_of([user_id]))[user_id]


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(priority_service, "monotonic", time)
    return time


@pytest.mark.parametrize(
    ("body", "priority"),
    [
        ('{"priority": "high"}', "high"),
        ('{"priority": "LOW", "plan": {"name": "free"}}', "low"),
        ('"Medium"', "medium"),
        ("high", "high"),
        (" Low\r\n", "low"),
    ],
)
async def test_the_answer_is_json_or_a_word(
    body: str, priority: str, service: Service, new_client: NewClient
) -> None:
    service.reply = says(body)
    assert (
        await priority_of(new_client(fallback="medium" if priority != "medium" else "low"), "ann") == priority
    )
    assert service.requests == ["/plans/ann?of=gold"]


def test_anything_else_is_nonsense(subtests: pytest.Subtests) -> None:
    for body in [
        "",
        "highest",
        "{}",
        "[]",
        "null",
        "3",
        '{"priority": 1}',
        '{"priority": null}',
        "<html>",
        "[" * 9999,
    ]:
        with subtests.test(body=body), pytest.raises(ValueError, match="no priority"):
            read_answer(body.encode())


def test_bytes_that_are_not_text_are_invalid() -> None:
    with pytest.raises(ValueError, match="no priority"):
        read_answer(b"\xff\xfehigh")


async def test_a_user_is_one_segment_of_the_path_with_any_name(
    service: Service, new_client: NewClient
) -> None:
    ask = new_client()
    for user in ("a/b", "../x", "a?b#c", "ä %", "{user_id}", "a\r\nb", "\ud800"):
        assert await priority_of(ask, user) == "high"
    assert service.requests == [
        f"/plans/{part}?of=gold"
        for part in ("a%2Fb", "..%2Fx", "a%3Fb%23c", "%C3%A4%20%25", "%7Buser_id%7D", "a%0D%0Ab", "%3F")
    ]


@pytest.mark.parametrize("user", ["", ".", ".."])
async def test_a_user_that_would_change_the_path_is_not_requested(
    user: str, service: Service, new_client: NewClient
) -> None:
    assert await priority_of(new_client(fallback="low"), user) == "low"
    assert service.requests == []


async def test_an_address_without_a_place_for_the_user_gets_the_usual_path(
    service: Service, new_client: NewClient
) -> None:
    base = service.url.partition("/plans")[0]
    for url in (base, f"{base}/"):
        assert await priority_of(new_client(url=url), "ann") == "high"
    assert service.requests == ["/users/ann/priority"] * 2


@pytest.mark.parametrize(
    "reply",
    [
        says("nonsense"),
        says('{"priority": "urgent"}'),
        says("high", "500 Internal Server Error"),
        says("high", "302 Found\r\nlocation: /elsewhere"),
        says("high", "401 Unauthorized"),
        says("high" + " " * 100_000),
        resets,
        gibberish,
        breaks_off,
        floods,
    ],
)
async def test_every_error_gives_the_fallback(reply: Reply, service: Service, new_client: NewClient) -> None:
    service.reply = reply
    ask = new_client(fallback="low")
    assert await priority_of(ask, "ann") == "low"
    assert (len(service.requests), ask._failures) == (1, 1)


@pytest.mark.parametrize("reply", [hangs, dribbles])
async def test_a_slow_service_is_not_waited_for(
    reply: Reply, service: Service, new_client: NewClient
) -> None:
    service.reply = reply
    ask = new_client(timeout_seconds=0.2)
    async with asyncio.timeout(20):
        assert await priority_of(ask, "ann") == "medium"
    await wait_until(lambda: ask._failures == 1)


async def test_nobody_there_gives_the_fallback() -> None:
    async with PriorityService(PriorityServiceSettings(url="http://127.0.0.1:1", fallback="high")) as ask:
        assert await priority_of(ask, "ann") == "high"


async def test_a_way_to_ask_that_does_not_listen_to_the_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = asyncio.Event()

    async def deaf(_: str) -> bytes:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return b"high"

    ask = PriorityService(PriorityServiceSettings(url="http://h", timeout_seconds=0.1))
    monkeypatch.setattr(ask, "_get", deaf)
    async with asyncio.timeout(20):
        assert await priority_of(ask, "ann") == "medium"
    released.set()
    await ask.close()


async def test_an_answer_is_remembered_for_a_while(
    service: Service, new_client: NewClient, time: Time
) -> None:
    ask = new_client(cache_seconds=60)
    assert await priority_of(ask, "ann") == "high"
    service.reply = says("low")
    time.now += 59.9
    assert await priority_of(ask, "ann") == "high"
    time.now += 0.1
    assert await priority_of(ask, "ann") == "low"
    assert len(service.requests) == 2


async def test_a_failure_is_not_remembered(service: Service, new_client: NewClient) -> None:
    ask = new_client()
    service.reply = resets
    assert await priority_of(ask, "ann") == "medium"
    service.reply = says("high")
    assert await priority_of(ask, "ann") == "high"


async def test_a_bounded_number_of_users_is_remembered_and_the_oldest_is_dropped(
    service: Service, new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority_service, "MOST_KNOWN", 3)
    ask = new_client()
    for user in ("a", "b", "c", "d", "d", "b", "a"):
        await priority_of(ask, user)
    assert [path[7] for path in service.requests] == ["a", "b", "c", "d", "a"]


async def test_concurrent_requests_for_one_user_share_the_answer(
    service: Service, new_client: NewClient
) -> None:
    proceed = asyncio.Event()

    async def wait_first(path: str, writer: asyncio.StreamWriter) -> None:
        await proceed.wait()
        await says("high")(path, writer)

    service.reply = wait_first
    ask = new_client()
    waiting = [asyncio.create_task(priority_of(ask, "ann")) for _ in range(20)]
    await wait_until(lambda: service.requests)
    waiting[0].cancel()  # the first one goes away; the others still get their answer
    proceed.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == ["high"] * 19
    assert len(service.requests) == 1


async def test_after_some_failures_it_is_left_alone_and_then_tried_once(
    service: Service, new_client: NewClient, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    service.reply = resets
    ask = new_client()
    for n in range(MOST_FAILURES + 3):
        assert await priority_of(ask, f"user {n}") == "medium"
    assert len(service.requests) == MOST_FAILURES
    time.now += 9.9
    await priority_of(ask, "ann")
    assert len(service.requests) == MOST_FAILURES
    time.now += 0.1
    await priority_of(ask, "ann")
    await priority_of(ask, "bob")
    assert len(service.requests) == MOST_FAILURES + 1  # the trial failed: left alone again
    service.reply = says("high")
    time.now += 10
    assert await priority_of(ask, "ann") == "high"
    assert await priority_of(ask, "bob") == "high"
    assert [words.split()[0] for words in logged(caplog)] == [
        "priority_service_left_alone",
        "priority_service_back",
    ]


async def test_while_a_trial_is_under_way_others_do_not_wait_for_it(
    service: Service, new_client: NewClient, time: Time
) -> None:
    service.reply = resets
    ask = new_client()
    for n in range(MOST_FAILURES):
        await priority_of(ask, f"user {n}")
    service.reply = hangs
    time.now += 10
    trial = asyncio.create_task(priority_of(ask, "ann"))
    await wait_until(lambda: len(service.requests) == MOST_FAILURES + 1)
    assert [await priority_of(ask, user) for user in ("bob", "eve")] == ["medium"] * 2
    assert len(service.requests) == MOST_FAILURES + 1
    trial.cancel()


async def test_an_answer_in_between_resets_the_count(service: Service, new_client: NewClient) -> None:
    ask = new_client()
    for n in range(3 * MOST_FAILURES):
        service.reply = says("high") if n % MOST_FAILURES == 0 else resets
        await priority_of(ask, f"user {n}")
    assert len(service.requests) == 3 * MOST_FAILURES


async def test_unknown_users_are_not_a_failure(service: Service, new_client: NewClient) -> None:
    service.reply = says("who?", "404 Not Found")
    ask = new_client(fallback="low")
    for n in range(2 * MOST_FAILURES):
        assert await priority_of(ask, f"user {n}") == "low"
    assert await priority_of(ask, "user 0") == "low"
    assert (len(service.requests), ask._failures) == (2 * MOST_FAILURES, 0)


async def test_closing_ends_requests_under_way_with_the_fallback(
    service: Service, new_client: NewClient
) -> None:
    service.reply = hangs
    ask = new_client()
    waiting = asyncio.create_task(priority_of(ask, "ann"))
    await wait_until(lambda: service.requests)
    await ask.close()
    assert await waiting == "medium"


PLANS = {"free": 0.5, "pro": 3.0}


@pytest.mark.parametrize(
    ("answer", "weight"),
    [
        ('"weight": 3', 3.0),
        ('"weight": 0.01', 0.01),
        ('"weight": 1000', 1000.0),
        ('"plan": "pro"', 3.0),
        ('"plan": "pro", "weight": 7', 7.0),
        ('"plan": "pro", "weight": null', 3.0),
        ('"plan": {"name": "pro"}', None),
        ('"weight": null', None),
        ('"credits": 5', None),
    ],
)
async def test_the_answer_may_hold_a_weight_or_a_plan(
    answer: str,
    weight: float | None,
    service: Service,
    new_client: NewClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service.reply = says(f'{{"priority": "high", {answer}}}')
    ask = new_client(PLANS)
    assert await terms_of(ask, "ann") == Terms("high", weight)
    service.reply = says("low")
    assert await terms_of(ask, "ann") == Terms("high", weight), "it is remembered with the priority"
    assert not logged(caplog)


@pytest.mark.parametrize(
    "weight", ["0", "-1", "0.009", "1001", "1e999", "NaN", "-Infinity", '"3"', "true", "[1]", "{}", "9" * 400]
)
@pytest.mark.parametrize(("plan", "instead"), [("", 1.0), (', "plan": "pro"', 3.0)])
async def test_an_invalid_weight_is_ignored(
    weight: str,
    plan: str,
    instead: float,
    service: Service,
    new_client: NewClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service.reply = says(f'{{"priority": "high", "weight": {weight}{plan}}}')
    ask = new_client(PLANS)
    assert await terms_of(ask, "ann") == Terms("high", instead)
    assert ask._failures == 0, "its priority is good"
    assert [words.split()[0] for words in logged(caplog)] == ["weight_ignored"]
    assert len(logged(caplog)[0]) < 100


async def test_an_unknown_plan_has_the_usual_weight_and_is_logged_once(
    service: Service, new_client: NewClient, caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = says('{"priority": "high", "plan": "gold"}')
    ask = new_client(PLANS)
    for user in ("ann", "bob"):
        assert await terms_of(ask, user) == Terms("high", 1.0)
    service.reply = says('{"priority": "low", "plan": "silver"}')
    assert await terms_of(ask, "eve") == Terms("low", 1.0)
    assert logged(caplog) == ["plan_unknown plan=gold weight=1", "plan_unknown plan=silver weight=1"]


async def test_plans_mean_nothing_where_none_has_a_weight(
    service: Service, new_client: NewClient, caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = says('{"priority": "high", "plan": "gold"}')
    assert await terms_of(new_client(), "ann") == Terms("high", None)
    assert not logged(caplog)


@pytest.mark.parametrize("reply", [resets, says("no such user", "404 Not Found"), says('{"weight": 3}')])
async def test_without_a_priority_there_is_no_weight(
    reply: Reply, service: Service, new_client: NewClient
) -> None:
    service.reply = reply
    assert await terms_of(new_client(PLANS, fallback="low"), "ann") == Terms("low", None)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fairlead.priority_service"]
