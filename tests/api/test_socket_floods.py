"""Frames that no honest client sends: too many, too small, or malformed. They cost others nothing."""

import asyncio
import contextlib
import re
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.listening import receive_one, say, socket
from tests.api.serving import Gateway, serving
from tests.api.test_abuse import line, memory_of, rest
from tests.api.test_floods import MIB, bystander, send_much
from tests.servers import Server
from tests.waiting import wait_until

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def frame(
    opcode: int, data: bytes = b"", *, fin: bool = True, reserved: int = 0, masked: bool = True
) -> bytes:
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    size = len(data)
    head = bytes([first, (0x80 if masked else 0) | (size if size < 126 else 126)])
    head += b"" if size < 126 else struct.pack("!H", size)
    return head + (bytes(4) if masked else b"") + data  # masked with zeros, which changes nothing


def close_code(answer: bytes) -> int:
    """Of the last frame the server sent, which is a short goodbye."""
    found = re.search(rb"\x88([\x02-\x7d])(..).*\Z", answer, re.S)
    assert found, answer
    return int(struct.unpack("!H", found[2])[0])


@contextlib.asynccontextmanager
async def raw_socket(gateway: Gateway, path: str = "/ws/tasks") -> AsyncIterator[Streams]:
    async with line(gateway) as (reader, writer):
        writer.write(HANDSHAKE.format(path=path).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        yield reader, writer


async def test_the_fragments_of_a_message_are_bounded(api: httpx.AsyncClient, gateway: Gateway) -> None:
    async with raw_socket(gateway) as (reader, writer), bystander(api):
        answering = asyncio.create_task(rest(reader))
        writer.write(frame(TEXT, b"{", fin=False))
        assert await send_much(writer, frame(CONT, fin=False) * 10_000, 64 * MIB) < 32 * MIB
        assert close_code(await answering) == 1008


@pytest.mark.parametrize(
    ("sent", "answer"),
    [(frame(PING), b"\x8a\x00"), (frame(TEXT), b'"type":"ERROR"')],
    ids=["pings", "empty messages"],
)
async def test_the_rate_at_which_frames_are_read_is_bounded(
    api: httpx.AsyncClient, gateway: Gateway, sent: bytes, answer: bytes
) -> None:
    async with raw_socket(gateway) as (reader, writer), bystander(api):
        began, answers = monotonic(), 0
        writer.write(sent * 200_000)
        while monotonic() < began + 4:
            answers += (await reader.read(MIB)).count(answer)
        # those of a second may come at once, and some are read together
        assert answers < 1000 * (monotonic() - began + 2)


async def test_unanswered_frames_delay_no_other_client(api: httpx.AsyncClient, gateway: Gateway) -> None:
    async with raw_socket(gateway) as (_, writer), bystander(api) as other:
        writer.write(frame(PONG) * 1_000_000)
        enough = other.answers + 100
        await wait_until(lambda: other.answers >= enough, 40)
        writer.transport.abort()  # most of it is not sent yet


async def test_answers_to_pings_that_nobody_reads_take_no_memory(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    before = memory_of(gateway)
    async with raw_socket(gateway) as (_, writer), bystander(api):
        assert await send_much(writer, frame(PING, b"x" * 125) * 1000, 64 * MIB) < 64 * MIB
        assert memory_of(gateway) - before < 50


async def test_a_message_in_a_few_fragments_with_pings_between_arrives(
    gateway: Gateway, store: Store
) -> None:
    async with raw_socket(gateway) as (reader, writer):
        text = b'{"task_type": "echo", "ref": 7}'
        pieces = [text[at : at + 1] for at in range(len(text))]
        writer.write(frame(TEXT, pieces[0], fin=False))
        for piece in pieces[1:-1]:
            writer.write(frame(PING, b"p") + frame(CONT, piece, fin=False))
        writer.write(frame(CONT, pieces[-1]))
        assert b'"ref":7' in await reader.readuntil(b'"ref":7')
    assert (await store.stats()).queues["medium"].depth == 1


async def test_frames_sent_with_the_handshake_are_read(gateway: Gateway, store: Store) -> None:
    async with line(gateway) as (reader, writer):
        writer.write(
            HANDSHAKE.format(path="/ws/tasks").encode() + frame(TEXT, b'{"task_type": "echo", "ref": 8}')
        )
        assert b'"ref":8' in await reader.readuntil(b'"ref":8')


MALFORMED = {
    "not masked": (frame(TEXT, b"{}", masked=False), 1002),
    "reserved bits": (frame(TEXT, b"{}", reserved=4), 1002),
    "an unknown opcode": (frame(3), 1002),
    "an unknown control frame": (frame(11), 1002),
    "a continuation of nothing": (frame(CONT, b"x"), 1002),
    "a message within a message": (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002),
    "a ping in fragments": (frame(PING, fin=False), 1002),
    "a long ping": (frame(PING, b"x" * 126), 1002),
    "a goodbye of one byte": (frame(CLOSE, b"x"), 1002),
    "a goodbye with a bad code": (frame(CLOSE, struct.pack("!H", 999)), 1002),
    "a goodbye that is not UTF-8": (frame(CLOSE, struct.pack("!H", 1000) + b"\xff"), 1007),
    "a text that is not UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "a text that is cut in a letter": (frame(TEXT, b"\xc3", fin=False) + frame(CONT, b"("), 1007),
    "a length beyond all bounds": (b"\x81\xff" + b"\x7f" + b"\xff" * 7 + bytes(4), 1009),
    "a length with its first bit set": (b"\x81\xff" + b"\xff" * 8 + bytes(4), 1009),
    "too large a message": (b"\x81\xff" + struct.pack("!Q", MIB) + bytes(4), 1009),
    "noise": (bytes(range(255, 0, -1)), 1002),
}


async def test_malformed_frames_leave_one_line_in_the_log(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        for what, (sent, code) in MALFORMED.items():
            async with raw_socket(gateway) as (reader, writer):
                writer.write(sent)
                assert close_code(await rest(reader)) == code, what
        async with socket(gateway, "/ws/tasks") as opened:  # it stays open for others
            await say(opened, task_type="echo")
            assert (await receive_one(opened))["type"] == "SUBMITTED"
    logged = gateway.log_text()
    assert logged.count("socket_malformed") == 1 and "Traceback" not in logged, logged


async def test_an_invalid_handshake_is_refused(gateway: Gateway) -> None:
    good = HANDSHAKE.format(path="/ws/tasks")
    for bad in (
        good.replace("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"),
        good.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Key: short"),
        good.replace("Sec-WebSocket-Version: 13\r\n", ""),
        good.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
    ):
        async with line(gateway) as (reader, writer):
            writer.write(bad.encode())
            answer = await rest(reader)
            assert answer.startswith(b"HTTP/1.1 400 ") and b'"code":"bad_handshake"' in answer
