"""Reads what a namespace keeps for its whole life and does not change with its work."""

from dataclasses import dataclass, field
from typing import Any

from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import text
from fairlead.store.session import Session

HASHES = ("types", "pipelines", "paused", "crons", "schedules")
SETS = ("declarations", "declared", "shared")
#: The fields of a limit that say what it allows; the others say how it is used.
OF_LIMITS = (
    b"kind",
    b"limit",
    b"interval",
    b"burst",
    b"paused",
    b"shared",
    b"declared:code",
    b"declared:file",
)

Fields = dict[bytes, bytes]


@dataclass(slots=True)
class Definitions:
    """Limits and API keys by their names, and keys of the store that are copied whole."""

    limits: dict[str, Fields] = field(default_factory=dict)
    keys: dict[str, Fields] = field(default_factory=dict)
    hashes: dict[str, Fields] = field(default_factory=dict)
    sets: dict[str, dict[str, float]] = field(default_factory=dict)


async def read_definitions(session: Session) -> Definitions:
    """In pieces: each limit and each key is read in one step, all of them are not."""
    connection, found = session.connection, Definitions()
    key = connection.keys.key
    hashes = await connection.read(*[("HGETALL", key(name)) for name in HASHES])
    found.hashes = {name: fields for name, fields in zip(HASHES, hashes, strict=True) if fields}
    sets = await connection.read(*[("ZRANGE", key(name), 0, -1, "WITHSCORES") for name in SETS])
    for name, members in zip(SETS, sets, strict=True):
        if members:
            found.sets[name] = {text(member): float(score) for member, score in _scores(members)}
    for kind, of, names in (("limit", found.limits, "limits"), ("key", found.keys, "keys")):
        listed = [text(name) for name in (await connection.read(("ZRANGE", key(names), 0, -1)))[0]]
        read = await read_in_pieces(connection, [("HGETALL", key(kind, name)) for name in listed])
        of.update({name: fields for name, fields in zip(listed, read, strict=True) if fields})
    for name, fields in list(found.limits.items()):
        if b"group" in fields:  # it was made by a task and comes back with it
            del found.limits[name]
        else:
            found.limits[name] = {field: fields[field] for field in OF_LIMITS if field in fields}
    return found


def _scores(members: list[Any]) -> list[tuple[bytes, bytes]]:
    """Pairs, whichever protocol the connection speaks."""
    if members and isinstance(members[0], list | tuple):
        return [(member, score) for member, score in members]
    return list(zip(members[::2], members[1::2], strict=True))
