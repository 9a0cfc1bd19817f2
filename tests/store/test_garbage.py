"""The doctor names whatever was edited or damaged in a namespace instead of failing on it."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fairlead.errors import StoreFault
from fairlead.settings import Settings
from fairlead.store.connection import Connection
from fairlead.store.doctor.doctor import Breach
from fairlead.store.doctor.snapshot import TASK_FIELDS, split
from fairlead.store.keys import ALL, Key
from fairlead.store.store import Store
from tests.servers import Server
from tests.store.busy import look

pytestmark = pytest.mark.long

BINARY = b"\xff\x00\xfe\n"
LONG = b"9" * 5_000  # more digits than Python reads as one number
#: Hashes whose fields are counts, instants and numbers, except for a few that are words or marks.
COUNTING = {
    "meta",
    "limit",
    "lease",
    "worker",
    "key",
    "waiting",
    "idle",
    "kinds",
    "pace",
    "recent",
    "recentof",
    "metrics",
    "acquisitions",
}
WORDS = (b"profile", b"streak_0", b"streak_1")
GARBAGE = (b"garbage", b"", b"a=x,b", b"nan", LONG, BINARY)


@pytest.fixture
def server(start_server: Callable[[str], Server]) -> Server:
    """One is enough: the doctor reads all of them the same way."""
    return start_server("valkey")


def name_of(key: Key) -> str:
    return f"{key.name}:garbage" if key.of else key.name


def whole_name(connection: Connection, name: str) -> bytes:
    return (connection.keys.prefix + name).encode(errors="surrogateescape")


@asynccontextmanager
async def kept(connection: Connection, *names: str) -> AsyncIterator[None]:
    """What the keys hold is there again afterwards."""
    client, keys = connection.client, [whole_name(connection, name) for name in names]
    before = [(await client.dump(key), await client.pttl(key)) for key in keys]
    yield
    for key, (content, ttl) in zip(keys, before, strict=True):
        await client.delete(key)
        if content is not None:
            await client.restore(key, max(0, ttl), content)


async def plant(connection: Connection, name: str, kind: str, content: bytes) -> None:
    client, key = connection.client, whole_name(connection, name)
    if kind == "hash":
        await client.hset(key, content, content)
    elif kind == "zset":
        await client.zadd(key, {content: float("inf")})
    elif kind == "stream":
        await client.xadd(key, {content: content})
    elif kind == "list":
        await client.rpush(key, content)
    else:
        await client.set(key, content)


async def examined(connection: Connection) -> list[Breach]:
    breaches = await look(connection, twice=False)
    for breach in breaches:
        breach.sentence.encode()  # it can be printed
    return breaches


def named(name: str, breaches: list[Breach], invariant: str) -> bool:
    shown = name.encode(errors="backslashreplace").decode()
    return any(b.invariant == invariant and f"key {shown}" in b.sentence for b in breaches)


async def test_a_key_of_the_wrong_type_is_named(busy: Connection) -> None:
    for key in ALL:
        name, wrong = name_of(key), "list" if key.type != "list" else "hash"
        async with kept(busy, name):
            await busy.client.delete(whole_name(busy, name))
            await plant(busy, name, wrong, BINARY)
            assert named(name, await examined(busy), "K1"), name
    assert await look(busy) == []


async def test_bytes_that_are_not_text_are_named(busy: Connection) -> None:
    for key in ALL:
        if key.type == "list":  # whose content is not looked at
            continue
        async with kept(busy, name_of(key)):
            await plant(busy, name_of(key), key.type, BINARY)
            # of a task only some fields are read
            invariant = {"audit": "A1", "task": "I1", "tasks": "L1", "jobs": "L1"}.get(key.name, "K6")
            breaches = [b for b in await examined(busy) if b.invariant == invariant]
            about = name_of(key).replace("task:", "task ")
            assert any(about in breach.sentence for breach in breaches), key.name
    assert await look(busy) == []


async def test_no_garbage_in_a_member_or_in_the_name_of_a_key_breaks_the_doctor(busy: Connection) -> None:
    for key, content in itertools.product(ALL, GARBAGE):
        async with kept(busy, name_of(key)):
            await plant(busy, name_of(key), key.type, content)
            await examined(busy)
        name = f"{key.name}:{content.decode(errors='surrogateescape')}"
        async with kept(busy, name):
            await plant(busy, name, key.type, b"garbage")
            breaches = await examined(busy)
            assert content != BINARY or named(name, breaches, "K6" if key.of else "K1"), name
    assert await look(busy) == []


async def test_entries_of_streams_that_cannot_be_read_are_named(busy: Connection) -> None:
    for content in GARBAGE:
        async with kept(busy, "events", "audit"):
            await busy.client.xadd(busy.keys.key("events"), {"events": content})
            await busy.client.xadd(busy.keys.key("audit"), {"entry": content, "hash": content})
            breaches = await examined(busy)
            assert named("events", breaches, "K6"), content
            assert "A1" in {breach.invariant for breach in breaches}, content


async def test_a_field_that_is_garbage_is_named_where_it_must_be_a_number_or_text(busy: Connection) -> None:
    """In the largest hash of each kind."""
    prefix = busy.keys.prefix
    client: Any = busy.client
    found = [key async for key in client.scan_iter(match=prefix + "*", count=1000)]
    hashes: dict[str, tuple[str, dict[bytes, bytes]]] = {}
    for key in found:
        name = key.decode().removeprefix(prefix)
        fields = await client.hgetall(key) if await client.type(key) == b"hash" else {}
        if len(fields) > len(hashes.get(split(name)[0], ("", {}))[1]):
            hashes[split(name)[0]] = name, fields
    assert hashes.keys() > COUNTING
    for kind, (name, fields) in hashes.items():
        for (field, value), content in itertools.product(fields.items(), GARBAGE):
            if kind == "task" and field.decode() not in TASK_FIELDS:
                continue
            await client.hset(prefix + name, field, content)
            breaches = await examined(busy)
            is_count = kind in COUNTING and value.isdigit() and field not in WORDS
            if content == BINARY or (content == b"garbage" and is_count):
                assert named(name, breaches, "K6"), (name, field, content, breaches)
            await client.hset(prefix + name, field, value)
    assert await look(busy) == []


async def test_a_beat_that_is_not_a_number_is_named_with_what_to_do(busy: Connection) -> None:
    await busy.client.hset(busy.keys.meta, "beat", "soon")
    (breach,) = await examined(busy)
    assert breach.invariant == "K6"
    assert "key meta: field beat is 'soon'" in breach.sentence
    assert "`fairlead open --restored`" in breach.sentence
    with pytest.raises(StoreFault, match=r"field beat of its record is 'soon'.*Run `fairlead doctor`"):
        await Store(busy, Settings()).epochs.check()
