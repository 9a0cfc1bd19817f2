"""The priority of a user, from a real server that answers, hangs, lies and breaks the line."""

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

    def make(plans: Mapping[str, float] | None = None, **wishes: object) -> PriorityService:
        settings = PriorityServiceSettings(**{"url": service.url, "timeout_seconds": 15, **wishes})  # type: ignore[arg-type]
        made.append(PriorityService(settings, plans))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def priority_of(ask: PriorityService, user_id: str) -> str:
    return (await ask.terms_of(user_id)).priority


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
    assert await priority_of(asking(fallback="medium" if priority != "medium" else "low"), "ann") == priority
    assert service.asked == ["/plans/ann?of=gold"]


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


def test_bytes_that_are_no_text_are_nonsense() -> None:
    with pytest.raises(ValueError, match="no priority"):
        read_answer(b"\xff\xfehigh")


async def test_a_user_is_one_part_of_the_path_whatever_it_is_called(service: Service, asking: Ask) -> None:
    ask = asking()
    for user in ("a/b", "../x", "a?b#c", "ä %", "{user_id}", "a\r\nb", "\ud800"):
        assert await priority_of(ask, user) == "high"
    assert service.asked == [
        f"/plans/{part}?of=gold"
        for part in ("a%2Fb", "..%2Fx", "a%3Fb%23c", "%C3%A4%20%25", "%7Buser_id%7D", "a%0D%0Ab", "%3F")
    ]


@pytest.mark.parametrize("user", ["", ".", ".."])
async def test_a_user_who_would_lead_elsewhere_is_not_asked_for(
    user: str, service: Service, asking: Ask
) -> None:
    assert await priority_of(asking(fallback="low"), user) == "low"
    assert service.asked == []


async def test_an_address_without_a_place_for_the_user_gets_the_usual_path(
    service: Service, asking: Ask
) -> None:
    base = service.url.partition("/plans")[0]
    for url in (base, f"{base}/"):
        assert await priority_of(asking(url=url), "ann") == "high"
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
    assert await priority_of(ask, "ann") == "low"
    assert (len(service.asked), ask._failures) == (1, 1)


@pytest.mark.parametrize("reply", [hangs, dribbles])
async def test_who_takes_too_long_is_not_waited_for(reply: Reply, service: Service, asking: Ask) -> None:
    service.reply = reply
    ask = asking(timeout_seconds=0.2)
    async with asyncio.timeout(20):
        assert await priority_of(ask, "ann") == "medium"
    await wait_until(lambda: ask._failures == 1)


async def test_nobody_there_gives_the_fallback() -> None:
    async with PriorityService(PriorityServiceSettings(url="http://127.0.0.1:1", fallback="high")) as ask:
        assert await priority_of(ask, "ann") == "high"


async def test_a_way_to_ask_that_does_not_listen_to_the_time_is_not_waited_for() -> None:
    released = asyncio.Event()

    async def deaf(_: str) -> bytes:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return b"high"

    ask = PriorityService(PriorityServiceSettings(url="http://h", timeout_seconds=0.1), get=deaf)
    async with asyncio.timeout(20):
        assert await priority_of(ask, "ann") == "medium"
    released.set()
    await ask.close()


async def test_an_answer_is_remembered_for_a_while(service: Service, asking: Ask, time: Time) -> None:
    ask = asking(cache_seconds=60)
    assert await priority_of(ask, "ann") == "high"
    service.reply = says("low")
    time.now += 59.9
    assert await priority_of(ask, "ann") == "high"
    time.now += 0.1
    assert await priority_of(ask, "ann") == "low"
    assert len(service.asked) == 2


async def test_a_failure_is_not_remembered(service: Service, asking: Ask) -> None:
    ask = asking()
    service.reply = resets
    assert await priority_of(ask, "ann") == "medium"
    service.reply = says("high")
    assert await priority_of(ask, "ann") == "high"


async def test_so_many_users_are_remembered_and_the_oldest_goes(
    service: Service, asking: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority_service, "MOST_KNOWN", 3)
    ask = asking()
    for user in ("a", "b", "c", "d", "d", "b", "a"):
        await priority_of(ask, user)
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
    waiting = [asyncio.create_task(priority_of(ask, "ann")) for _ in range(20)]
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
        assert await priority_of(ask, f"user {n}") == "medium"
    assert len(service.asked) == MOST_FAILURES
    time.now += 9.9
    await priority_of(ask, "ann")
    assert len(service.asked) == MOST_FAILURES
    time.now += 0.1
    await priority_of(ask, "ann")
    await priority_of(ask, "bob")
    assert len(service.asked) == MOST_FAILURES + 1  # the trial failed: left alone again
    service.reply = says("high")
    time.now += 10
    assert await priority_of(ask, "ann") == "high"
    assert await priority_of(ask, "bob") == "high"
    assert [words.split()[0] for words in logged(caplog)] == [
        "priority_service_left_alone",
        "priority_service_back",
    ]


async def test_while_a_trial_is_under_way_others_do_not_wait_for_it(
    service: Service, asking: Ask, time: Time
) -> None:
    service.reply = resets
    ask = asking()
    for n in range(MOST_FAILURES):
        await priority_of(ask, f"user {n}")
    service.reply = hangs
    time.now += 10
    trial = asyncio.create_task(priority_of(ask, "ann"))
    await wait_until(lambda: len(service.asked) == MOST_FAILURES + 1)
    assert [await priority_of(ask, user) for user in ("bob", "eve")] == ["medium"] * 2
    assert len(service.asked) == MOST_FAILURES + 1
    trial.cancel()


async def test_an_answer_in_between_begins_the_count_anew(service: Service, asking: Ask) -> None:
    ask = asking()
    for n in range(3 * MOST_FAILURES):
        service.reply = says("high") if n % MOST_FAILURES == 0 else resets
        await priority_of(ask, f"user {n}")
    assert len(service.asked) == 3 * MOST_FAILURES


async def test_users_it_does_not_know_are_no_failure(service: Service, asking: Ask) -> None:
    service.reply = says("who?", "404 Not Found")
    ask = asking(fallback="low")
    for n in range(2 * MOST_FAILURES):
        assert await priority_of(ask, f"user {n}") == "low"
    assert await priority_of(ask, "user 0") == "low"
    assert (len(service.asked), ask._failures) == (2 * MOST_FAILURES, 0)


async def test_closing_ends_what_is_under_way_with_the_fallback(service: Service, asking: Ask) -> None:
    service.reply = hangs
    ask = asking()
    waiting = asyncio.create_task(priority_of(ask, "ann"))
    await wait_until(lambda: service.asked)
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
    answer: str, weight: float | None, service: Service, asking: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = says(f'{{"priority": "high", {answer}}}')
    ask = asking(PLANS)
    assert await ask.terms_of("ann") == Terms("high", weight)
    service.reply = says("low")
    assert await ask.terms_of("ann") == Terms("high", weight), "it is remembered with the priority"
    assert not logged(caplog)


@pytest.mark.parametrize(
    "weight", ["0", "-1", "0.009", "1001", "1e999", "NaN", "-Infinity", '"3"', "true", "[1]", "{}", "9" * 400]
)
@pytest.mark.parametrize(("plan", "instead"), [("", 1.0), (', "plan": "pro"', 3.0)])
async def test_a_weight_that_is_none_is_ignored(
    weight: str,
    plan: str,
    instead: float,
    service: Service,
    asking: Ask,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service.reply = says(f'{{"priority": "high", "weight": {weight}{plan}}}')
    ask = asking(PLANS)
    assert await ask.terms_of("ann") == Terms("high", instead)
    assert ask._failures == 0, "its priority is good"
    assert [words.split()[0] for words in logged(caplog)] == ["weight_ignored"]
    assert len(logged(caplog)[0]) < 100


async def test_an_unknown_plan_has_the_usual_weight_and_is_logged_once(
    service: Service, asking: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = says('{"priority": "high", "plan": "gold"}')
    ask = asking(PLANS)
    for user in ("ann", "bob"):
        assert await ask.terms_of(user) == Terms("high", 1.0)
    service.reply = says('{"priority": "low", "plan": "silver"}')
    assert await ask.terms_of("eve") == Terms("low", 1.0)
    assert logged(caplog) == ["plan_unknown plan=gold weight=1", "plan_unknown plan=silver weight=1"]


async def test_plans_say_nothing_where_none_has_a_weight(
    service: Service, asking: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = says('{"priority": "high", "plan": "gold"}')
    assert await asking().terms_of("ann") == Terms("high", None)
    assert not logged(caplog)


@pytest.mark.parametrize("reply", [resets, says("no such user", "404 Not Found"), says('{"weight": 3}')])
async def test_without_a_priority_there_is_no_weight(reply: Reply, service: Service, asking: Ask) -> None:
    service.reply = reply
    assert await asking(PLANS, fallback="low").terms_of("ann") == Terms("low", None)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fairlead.priority_service"]
