"""The replies of acts: maps of names that the header of the act lists."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.store.connection import Argument, Connection, pack
from tests.connections import with_call
from tests.headers import names_in_header
from tests.store.busy import LEASE, NOW, task

OPEN = {"fields", "ahead", "ended"}  # whose keys are fields of a record, priorities, states

#: Acts that reply with more than a word, on the busy namespace. The rest is read by its text (tests/unit).
CALLS: dict[str, tuple[Argument, ...]] = {
    "acquire": ("", "inner", 1, LEASE, "more", "me", 0, 1, "", 1, NOW),
    "bury": (NOW + 3_600_000,),
    "cancel": ("draws", NOW),
    "claim": ("w", 20, LEASE, 0, "", "", "", NOW),
    "complete": ("w", pack([{"id": "draws", "result": "{}"}]), NOW),
    "explain": ("both", "0", NOW),
    "heartbeat": ("w", "active", pack(None), 0, LEASE, NOW),
    "release": ("", pack([{"id": "bare", "limit": "disk", "scope": ""}]), 1, NOW),
    "renew": (pack({"id": "bare", "limit": "disk", "scope": ""}), LEASE, NOW),
    "show_keys": ("", 0, NOW),
    "list_limits": ("", "", "", 200, "", NOW),
    "show_limits": ("", "gpu", "", "", NOW),
    "show_workers": ("0", "", 10, 1000, "0", NOW),
    "stall": ("w", "1", pack([]), 0, NOW),
    "stats": ("", NOW),
    "submit": (pack([task("new", limits="gpu=1"), task("done", parameters="[]")]), NOW),
}
WITHOUT_ROWS = ("acquire", "cancel", "renew")


def maps_in(reply: Any) -> Iterator[dict[str, Any]]:
    if isinstance(reply, dict):
        yield reply
        for name, value in reply.items():
            yield from maps_in(value) if name not in OPEN else ()
    elif isinstance(reply, list):
        for row in reply:
            yield from maps_in(row)


@pytest.mark.parametrize("name", CALLS)
async def test_the_header_lists_every_name_of_a_reply(busy: Connection, name: str) -> None:
    await busy.run("submit", pack([task("extra")]), NOW)  # for the claim
    reply = await busy.run(name, *CALLS[name])
    assert reply["answer"] == "ok"
    assert {key for one in maps_in(reply) for key in one} - {"answer"} <= names_in_header(name)
    rows = [row for value in reply.values() if isinstance(value, list) for row in value]
    assert all(isinstance(row, dict) for row in rows)
    assert rows or name in WITHOUT_ROWS


@pytest.mark.every_server
async def test_numbers_arrive_as_numbers_however_large_they_are(busy: Connection) -> None:
    reply = await busy.run("acquire", "", "disk", 1, LEASE, "late", "me", 0, 1, "", 1, "")
    stored: Any = await busy.client.hgetall(busy.keys.key("lease", "late"))
    assert (reply["fence"], reply["ends"]) == (int(stored[b"fence"]), int(stored[b"until"]))
    assert type(reply["fence"]) is int
    assert reply["fence"] > 1 << 50


@pytest.mark.every_server
async def test_nothing_is_an_empty_list_also_where_a_map_would_be(fresh: Connection) -> None:
    reply = await fresh.run("stats", "", NOW)
    assert reply["ended"] == []
    assert (await fresh.run("show_workers", *CALLS["show_workers"]))["workers"] == []


@pytest.mark.every_server
async def test_an_act_that_is_sent_as_a_script_replies_the_same(busy: Connection) -> None:
    other = with_call(busy, "(redis.call)")
    for name in ("stats", "explain", "show_limits", "show_keys", "show_workers"):
        assert await other.run(name, *CALLS[name]) == await busy.run(name, *CALLS[name]), name
