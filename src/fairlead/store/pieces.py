"""Many reads in short pieces, so that a page of large records does not delay the calls beside it."""

from collections.abc import Sequence
from typing import Any

from fairlead.store.connection import Connection
from fairlead.store.multiplexer import Command

FIRST = 16  # commands of a piece, as long as nothing is known of the answers
MOST = 500
GOOD_BYTES = 256 * 1024  # of the answers to one piece: far above the cost of a round trip, read in a few ms


async def read_in_pieces(connection: Connection, commands: Sequence[Command]) -> list[Any]:
    """The answers, in order. Other reads get their turn between two pieces."""
    answers: list[Any] = []
    count = FIRST
    while len(answers) < len(commands):
        piece = commands[len(answers) : len(answers) + count]
        answered = await connection.read_piece(*piece)
        count = next_count(len(piece), sum(map(size_of, answered)))
        answers += answered
    return answers


async def scan_keys(connection: Connection) -> list[str]:
    """The keys of the namespace, without their prefix; bytes that are not UTF-8 become surrogates."""
    prefix = connection.keys.prefix
    found = {key async for key in connection.client.scan_iter(match=prefix + "*", count=1000)}
    return [key.decode(errors="surrogateescape").removeprefix(prefix) for key in found]


def next_count(count: int, size: int) -> int:
    """How many commands to send next, after this number had answers of this size; it grows step by step."""
    return max(1, min(MOST, 4 * count, count * GOOD_BYTES // max(1, size)))


def size_of(answer: Any) -> int:
    """About how many bytes it took."""
    if isinstance(answer, bytes):
        return len(answer)
    if isinstance(answer, dict):
        return sum(map(size_of, answer)) + sum(map(size_of, answer.values()))
    return sum(map(size_of, answer)) if isinstance(answer, list) else 1
