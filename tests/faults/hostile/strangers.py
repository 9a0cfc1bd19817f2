"""Attacks that need no key, only access to the address."""

import asyncio

from tests.faults.hostile.lines import UPGRADE, Line, attack

SUBMIT = ("POST", "/api/v1/tasks", "Content-Type: application/json")
CHUNKED = "Transfer-Encoding: chunked"
LUMP = 1 << 16


@attack(16, by="stranger")
async def trailers(line: Line) -> None:
    """A chunked body that has ended, with headers behind it that never do."""
    await line.send(line.target.head(*SUBMIT, CHUNKED) + b"2\r\n{}\r\n0\r\n")
    while True:
        await line.send(b"X-Trailer: " + b"x" * 1000 + b"\r\n")


@attack(16, by="stranger")
async def long_trailer(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT, CHUNKED) + b"2\r\n{}\r\n0\r\nX-Trailer: ")
    while True:
        await line.send(b"x" * LUMP)


@attack(16, by="stranger")
async def chunk_extensions(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT, CHUNKED) + b"2;")
    while True:
        await line.send(b"x" * LUMP)


@attack(16, by="stranger")
async def tiny_chunks(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT, CHUNKED))
    while True:
        await line.send(b"1\r\n \r\n" * 10_000)


@attack(16, by="stranger")
async def endless_heads(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT)[:-2] + b"X-Endless: ")
    while True:
        await line.send(b"x" * LUMP)


@attack(16, by="stranger")
async def many_headers(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT)[:-2])
    while True:
        await line.send(b"A: b\r\n" * 10_000)


@attack(16, by="stranger")
async def pipelining(line: Line) -> None:
    """Requests as fast as the connection takes them, and no answer is read."""
    while True:
        await line.send(line.target.head("GET", "/healthz") * 1000)


@attack(16, by="stranger")
async def pipelining_and_reading(line: Line) -> None:
    reading = asyncio.create_task(line.until_cut())
    try:
        while not reading.done():
            await line.send(line.target.head("GET", "/healthz") * 1000)
    finally:
        reading.cancel()


@attack(2000, by="stranger")
async def slow_heads(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT)[:-2] + b"X-Slow: ")
    while True:
        await line.send(b"x")
        await asyncio.sleep(1)


@attack(2000, by="stranger")
async def slow_bodies(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT, "Content-Length: 1000"))
    while True:
        await line.send(b" ")
        await asyncio.sleep(1)


@attack(10_000, by="stranger")
async def idle_connections(line: Line) -> None:
    await line.until_cut()


@attack(200, by="stranger")
async def broken_connections(line: Line) -> None:
    await line.send(line.target.head(*SUBMIT, "Content-Length: 1000") + b"{")


@attack(50, by="stranger")
async def wrong_keys(line: Line) -> None:
    wrong = "Authorization: Bearer flk_abcdefgh_" + "x" * 43
    while True:
        await line.send(line.target.head("GET", "/api/v1/tasks", wrong))
        await line.answer()


@attack(50, by="stranger")
async def handshakes(line: Line) -> None:
    await line.send(line.target.head("GET", "/ws/tasks", *UPGRADE))
    await line.until_cut()
