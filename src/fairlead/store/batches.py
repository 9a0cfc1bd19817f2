"""Many items or reads in parts of a bounded size, so that none of them delays the calls beside it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from fairlead.model.batch import bounded_parts
from fairlead.store.connection import Connection, pack
from fairlead.store.multiplexer import Command

#: In one act.
MOST_ITEMS = 200
MOST_LIMITS = 200  # that its tasks name
MOST_BYTES = 1024 * 1024
CHUNK_BYTES = MOST_BYTES // 2  # of output; its packing takes some too

#: In one piece of reads; the first, as long as nothing is known of the answers.
FIRST_COMMANDS = 16
MOST_COMMANDS = 500
GOOD_BYTES = 256 * 1024  # of the answers to one piece: far above the cost of a round trip, read in a few ms


def in_parts(items: Iterable[dict[str, Any]]) -> Iterator[list[msgspec.Raw]]:
    """The packed items of one act after the other."""
    rows = ((item.get("limits", "").count("="), pack(item)) for item in items)
    most = MOST_ITEMS, MOST_LIMITS, MOST_BYTES
    for part in bounded_parts(rows, lambda row: (1, row[0], len(row[1])), most):
        yield [msgspec.Raw(packed) for _, packed in part]


def in_pieces(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A report of progress, as several if it has more output than fits into an act."""
    if "chunks" not in report:
        return [report]
    pieces: list[dict[str, Any]] = []
    room = 0
    for i, chunk in enumerate(report["chunks"]):
        room -= (size := len(chunk.encode()))
        if not pieces or room < 0:
            first = {"first": report["first"] + i} if "first" in report else {}
            pieces.append((report if not pieces else _holder(report)) | {"chunks": []} | first)
            room = CHUNK_BYTES - size
        pieces[-1]["chunks"].append(chunk)
    return pieces


def _holder(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ("id", "fence") if name in report}


async def read_in_pieces(connection: Connection, commands: Sequence[Command]) -> list[Any]:
    """The answers, in order. Other reads get their turn between two pieces."""
    answers: list[Any] = []
    count = FIRST_COMMANDS
    while len(answers) < len(commands):
        piece = commands[len(answers) : len(answers) + count]
        answered = await connection.read(*piece, paged=True)
        count = next_count(len(piece), sum(map(size_of, answered)))
        answers += answered
    return answers


async def scan_keys(connection: Connection) -> list[str]:
    """The keys of the namespace, without their prefix; bytes that are not UTF-8 become surrogates."""
    prefix = connection.keys.prefix
    client = await connection.found_client()
    found = {key async for key in client.scan_iter(match=prefix + "*", count=1000)}
    return [key.decode(errors="surrogateescape").removeprefix(prefix) for key in found]


def next_count(count: int, size: int) -> int:
    """How many commands to send next, after this number had answers of this size; it grows step by step."""
    return max(1, min(MOST_COMMANDS, 4 * count, count * GOOD_BYTES // max(1, size)))


def size_of(answer: Any) -> int:
    """About how many bytes it took."""
    if isinstance(answer, bytes):
        return len(answer)
    if isinstance(answer, dict):  # a hash
        return sum(map(len, answer)) + sum(map(len, answer.values()))
    return sum(map(size_of, answer)) if isinstance(answer, list) else 1
