"""The priority of a user, from a real server that answers, hangs, lies and breaks the line."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from fairlead import priority_service
from fairlead.priority_service import MOST_FAILURES, PriorityService, read_priority
from fairlead.settings import PriorityServiceSettings
from tests.waiting import wait_until

Reply = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Service:
    """A small HTTP server. `reply` is what it does with a request."""

    url: str
    reply: Reply
    asked: list[str] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            self.asked.append(path)
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
    for task in asyncio.all_tasks():  # of those who hang
        if "Service.handle" in repr(task.get_coro()):
            task.cancel()
    await server.wait_closed()


Ask = Callable[..., PriorityService]


@pytest.fixture
async def asking(service: Service) -> AsyncIterator[Ask]:
    made: list[PriorityService] = []

    def make(**wishes: object) -> PriorityService:
        settings = PriorityServiceSettings(**{"url": service.url, "timeout_seconds": 15, **wishes})  # type: ignore[arg-type]
        made.append(PriorityService(settings))
        return made[-1]

    yield make
    for one in made:
        await one.close()


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
async def test_the_answer_is_json_or_a_word(body: str, priority: str, service: Service, asking: Ask) -> None:
    service.reply = says(body)
    assert await asking(fallback="medium" if priority != "medium" else "low").priority_of("ann") == priority
    assert service.asked == ["/plans/ann?of=gold"]


@pytest.mark.parametrize(
    "body",
    ["", "highest", "{}", "[]", "null", "3", '{"priority": 1}', '{"priority": null}', "<html>", "[" * 9999],
)
def test_anything_else_is_nonsense(body: str) -> None:
    with pytest.raises(ValueError, match="no priority"):
        read_priority(body.encode())


def test_bytes_that_are_no_text_are_nonsense() -> None:
    with pytest.raises(ValueError, match="no priority"):
        read_priority(b"\xff\xfehigh")


async def test_a_user_is_one_part_of_the_path_whatever_it_is_called(service: Service, asking: Ask) -> None:
    ask = asking()
    for user in ("a/b", "../x", "a?b#c", "ä %", "{user_id}", "a\r\nb", "\ud800"):
        assert await ask.priority_of(user) == "high"
    assert service.asked == [
        f"/plans/{part}?of=gold"
        for part in ("a%2Fb", "..%2Fx", "a%3Fb%23c", "%C3%A4%20%25", "%7Buser_id%7D", "a%0D%0Ab", "%3F")
    ]


@pytest.mark.parametrize("user", ["", ".", ".."])
async def test_a_user_who_would_lead_elsewhere_is_not_asked_for(
    user: str, service: Service, asking: Ask
) -> None:
    assert await asking(fallback="low").priority_of(user) == "low"
    assert service.asked == []


async def test_an_address_without_a_place_for_the_user_gets_the_usual_path(
    service: Service, asking: Ask
) -> None:
    base = service.url.partition("/plans")[0]
    for url in (base, f"{base}/"):
        assert await asking(url=url).priority_of("ann") == "high"
    assert service.asked == ["/users/ann/priority"] * 2


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
async def test_what_goes_wrong_gives_the_fallback(reply: Reply, service: Service, asking: Ask) -> None:
    service.reply = reply
    ask = asking(fallback="low")
    assert await ask.priority_of("ann") == "low"
    assert (len(service.asked), ask._failures) == (1, 1)


@pytest.mark.parametrize("reply", [hangs, dribbles])
async def test_who_takes_too_long_is_not_waited_for(reply: Reply, service: Service, asking: Ask) -> None:
    service.reply = reply
    ask = asking(timeout_seconds=0.2)
    async with asyncio.timeout(20):
        assert await ask.priority_of("ann") == "medium"
    await wait_until(lambda: ask._failures == 1)


async def test_nobody_there_gives_the_fallback() -> None:
    async with PriorityService(PriorityServiceSettings(url="http://127.0.0.1:1", fallback="high")) as ask:
        assert await ask.priority_of("ann") == "high"


async def test_a_way_to_ask_that_does_not_listen_to_the_time_is_not_waited_for() -> None:
    released = asyncio.Event()

    async def deaf(_: str) -> bytes:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return b"high"

    ask = PriorityService(PriorityServiceSettings(url="http://h", timeout_seconds=0.1), deaf)
    async with asyncio.timeout(20):
        assert await ask.priority_of("ann") == "medium"
    released.set()
    await ask.close()


async def test_an_answer_is_remembered_for_a_while(service: Service, asking: Ask, time: Time) -> None:
    ask = asking(cache_seconds=60)
    assert await ask.priority_of("ann") == "high"
    service.reply = says("low")
    time.now += 59.9
    assert await ask.priority_of("ann") == "high"
    time.now += 0.1
    assert await ask.priority_of("ann") == "low"
    assert len(service.asked) == 2


async def test_a_failure_is_not_remembered(service: Service, asking: Ask) -> None:
    ask = asking()
    service.reply = resets
    assert await ask.priority_of("ann") == "medium"
    service.reply = says("high")
    assert await ask.priority_of("ann") == "high"


async def test_so_many_users_are_remembered_and_the_oldest_goes(
    service: Service, asking: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority_service, "MOST_KNOWN", 3)
    ask = asking()
    for user in ("a", "b", "c", "d", "d", "b", "a"):
        await ask.priority_of(user)
    assert [path[7] for path in service.asked] == ["a", "b", "c", "d", "a"]


async def test_those_who_ask_for_the_same_user_at_once_share_the_answer(
    service: Service, asking: Ask
) -> None:
    go_on = asyncio.Event()

    async def wait_first(path: str, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await says("high")(path, writer)

    service.reply = wait_first
    ask = asking()
    waiting = [asyncio.create_task(ask.priority_of("ann")) for _ in range(20)]
    await wait_until(lambda: service.asked)
    waiting[0].cancel()  # the first one goes away; the others still get their answer
    go_on.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == ["high"] * 19
    assert len(service.asked) == 1


async def test_after_some_failures_it_is_left_alone_and_then_tried_once(
    service: Service, asking: Ask, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    service.reply = resets
    ask = asking()
    for n in range(MOST_FAILURES + 3):
        assert await ask.priority_of(f"user {n}") == "medium"
    assert len(service.asked) == MOST_FAILURES
    time.now += 9.9
    await ask.priority_of("ann")
    assert len(service.asked) == MOST_FAILURES
    time.now += 0.1
    await ask.priority_of("ann")
    await ask.priority_of("bob")
    assert len(service.asked) == MOST_FAILURES + 1  # the trial failed: left alone again
    service.reply = says("high")
    time.now += 10
    assert await ask.priority_of("ann") == "high"
    assert await ask.priority_of("bob") == "high"
    told = [record.getMessage() for record in caplog.records if record.name == "fairlead.priority_service"]
    assert [words.split()[0] for words in told] == ["priority_service_left_alone", "priority_service_back"]


async def test_while_a_trial_is_under_way_others_do_not_wait_for_it(
    service: Service, asking: Ask, time: Time
) -> None:
    service.reply = resets
    ask = asking()
    for n in range(MOST_FAILURES):
        await ask.priority_of(f"user {n}")
    service.reply = hangs
    time.now += 10
    trial = asyncio.create_task(ask.priority_of("ann"))
    await wait_until(lambda: len(service.asked) == MOST_FAILURES + 1)
    assert [await ask.priority_of(user) for user in ("bob", "eve")] == ["medium"] * 2
    assert len(service.asked) == MOST_FAILURES + 1
    trial.cancel()


async def test_an_answer_in_between_begins_the_count_anew(service: Service, asking: Ask) -> None:
    ask = asking()
    for n in range(3 * MOST_FAILURES):
        service.reply = says("high") if n % MOST_FAILURES == 0 else resets
        await ask.priority_of(f"user {n}")
    assert len(service.asked) == 3 * MOST_FAILURES


async def test_users_it_does_not_know_are_no_failure(service: Service, asking: Ask) -> None:
    service.reply = says("who?", "404 Not Found")
    ask = asking(fallback="low")
    for n in range(2 * MOST_FAILURES):
        assert await ask.priority_of(f"user {n}") == "low"
    assert await ask.priority_of("user 0") == "low"
    assert (len(service.asked), ask._failures) == (2 * MOST_FAILURES, 0)


async def test_closing_ends_what_is_under_way_with_the_fallback(service: Service, asking: Ask) -> None:
    service.reply = hangs
    ask = asking()
    waiting = asyncio.create_task(ask.priority_of("ann"))
    await wait_until(lambda: service.asked)
    await ask.close()
    assert await waiting == "medium"
