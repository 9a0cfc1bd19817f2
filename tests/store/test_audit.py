"""The audit: every entry follows the one before, and an edit is found."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.audit import AuditEntry
from fairlead.store.access import audit
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import everything, raw, wipe

Fields = dict[bytes, bytes]


async def record(store: Store, n: int = 0, **other: Any) -> AuditEntry:
    entry = {"actor": "ann", "act": "set_limit", "subject": f"gpu{n}", "before": {"limit": n}, "after": None}
    return await store.audit.record(**{**entry, "reason": "more work", **other})


async def test_an_entry_says_who_did_what_when_and_why(store: Store, clock: Clock) -> None:
    entry = await record(store, 3)
    assert (await store.audit.page()).entries == [entry]
    assert (entry.seq, entry.at, entry.actor, entry.act) == (1, clock.now, "ann", "set_limit")
    assert (entry.subject, entry.before, entry.after) == ("gpu3", {"limit": 3}, None)
    assert (entry.reason, entry.previous, len(entry.hash)) == ("more work", "", 64)


async def test_each_entry_names_the_one_before_it(store: Store) -> None:
    entries = [await record(store, n) for n in range(5)]
    assert [entry.previous for entry in entries] == ["", *(entry.hash for entry in entries[:-1])]
    assert (await store.audit.page(2)).entries == entries[:-3:-1]
    assert (await store.audit.page(99)).entries == entries[::-1]
    assert await store.audit.verify() == []


@pytest.mark.every_server
async def test_concurrent_writers_make_one_chain(live_store: Store, open_store: Callable[..., Store]) -> None:
    stores = [open_store(live_store.connection.keys.namespace) for _ in range(4)]
    made = await asyncio.gather(*(record(stores[n % 4], n) for n in range(40)))
    assert sorted(entry.seq for entry in made) == list(range(1, 41))
    listed = (await live_store.audit.page()).entries
    assert {entry.subject for entry in listed} == {f"gpu{n}" for n in range(40)}
    assert await live_store.audit.verify() == []
    for store in stores:
        await store.close()


async def test_text_that_is_too_long_or_cannot_be_encoded_is_adapted(store: Store) -> None:
    entry = await record(store, actor="\ud800", reason="x" * 9_000, subject="ä\n\x00")
    assert (entry.actor, len(entry.reason), entry.subject) == ("?", 500, "ä\n\x00")
    assert await store.audit.verify() == []


async def test_a_value_that_is_not_json_is_refused_before_anything_is_written(store: Store) -> None:
    before = await everything(store)
    with pytest.raises(errors.InvalidInput):
        await record(store, before=float("nan"))
    with pytest.raises(errors.InvalidInput):
        await record(store, after=object())
    assert await everything(store) == before


async def rows(store: Store) -> list[tuple[bytes, Fields]]:
    found: list[tuple[bytes, Fields]] = await raw(store).xrange(store.connection.keys.key("audit"))
    return found


async def rewrite(store: Store, change: Callable[[list[Fields]], object]) -> None:
    """Somebody with write access to the server changes the entries."""
    entries = [dict(fields) for _, fields in await rows(store)]
    change(entries)
    key = store.connection.keys.key("audit")
    await raw(store).delete(key)
    for fields in entries:
        await raw(store).xadd(key, fields)


def edited(entry: Fields, *, rehashed: bool = False) -> None:
    facts = json.loads(entry[b"entry"])
    entry[b"entry"] = json.dumps({**facts, "actor": "bob"}).encode()
    if rehashed:
        entry[b"hash"] = audit._digest(entry[b"entry"].decode()).encode()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda entries: edited(entries[2]), "entry 3 was edited"),
        (lambda entries: edited(entries[4]), "entry 5 was edited"),
        (lambda entries: edited(entries[2], rehashed=True), "entry 4 does not follow entry 3"),
        (lambda entries: entries[2].update({b"hash": b"0" * 64}), "entry 3 was edited"),
        (lambda entries: entries[4].update({b"hash": b"\xff"}), "entry 5 was edited"),
        (lambda entries: entries.pop(2), "entry 4 does not follow entry 2"),
        (lambda entries: entries.pop(0), "the entries before 2 were removed"),
        (lambda entries: entries.pop(), "the entries after 4 were removed"),
        (lambda entries: entries.insert(2, entries[1]), "entry 2 does not follow entry 2"),
        (lambda entries: entries.reverse(), "entry 4 does not follow entry 5"),
        (lambda entries: entries[2].update({b"entry": b"\xff"}), "the entry after 2 cannot be read"),
        (lambda entries: entries[2].pop(b"entry"), "the entry after 2 cannot be read"),
        (lambda entries: entries[2].update({b"entry": b"{}"}), "the entry after 2 cannot be read"),
    ],
)
async def test_a_changed_entry_is_found(
    change: Callable[[list[Fields]], object], problem: str, store: Store, clock: Clock
) -> None:
    for n in range(5):
        await record(store, n)
    await rewrite(store, change)
    found = await store.audit.verify()
    assert any(words.startswith(problem) for words in found), found
    breaches = await examine(store.connection, now_ms=clock.now)
    assert [breach.invariant for breach in breaches] == ["A1"] * len(found)
    await wipe(store)


async def test_after_a_hash_that_is_not_text_entries_are_still_written_and_follow_each_other(
    store: Store,
) -> None:
    await record(store)
    await rewrite(store, lambda entries: entries[0].update({b"hash": b"\xff"}))
    second, third = await record(store), await record(store)
    assert (second.seq, third.seq, third.previous) == (2, 3, second.hash)
    found = await store.audit.verify()
    assert [words.partition(":")[0] for words in found] == [
        "entry 1 was edited",
        "entry 2 does not follow entry 1",
    ]
    await wipe(store)


async def test_all_that_was_taken_out_is_missed(store: Store) -> None:
    await record(store)
    await raw(store).delete(store.connection.keys.key("audit"))
    assert await store.audit.verify() == ["the entries after 0 were removed"]
    await wipe(store)


async def test_an_entry_that_cannot_be_read_is_reported(store: Store) -> None:
    await record(store)
    await rewrite(store, lambda entries: entries[0].update({b"entry": b"odd"}))
    with pytest.raises(errors.StoreFault, match="cannot be read"):
        await store.audit.page()
    await wipe(store)


async def test_the_latest_are_kept_and_their_chain_still_holds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "AT_ONCE", 3)
    for n in range(10):
        await record(store, n)
    await raw(store).xtrim(store.connection.keys.key("audit"), maxlen=7, approximate=False)
    assert await store.audit.verify() == ["the entries before 4 were removed"]
    monkeypatch.setattr(audit, "MOST_KEPT", 7)
    assert await store.audit.verify() == []
    assert [entry.seq for entry in (await store.audit.page(5)).entries] == [10, 9, 8, 7, 6]
    await wipe(store)


async def test_as_many_are_kept_as_the_check_supposes(store: Store) -> None:
    """The act trims, the check counts: both must mean the same number."""
    key = store.connection.keys.key("audit")
    pipeline = raw(store).pipeline(transaction=False)
    for _ in range(audit.MOST_KEPT):
        pipeline.xadd(key, {"entry": "x", "hash": "h"})
    await pipeline.execute()
    await record(store)
    assert await raw(store).xlen(key) == audit.MOST_KEPT
    await wipe(store)


async def test_pages_have_every_entry_once(store: Store) -> None:
    entries = [await record(store, n) for n in range(45)]
    seen, cursor = [], ""
    while True:
        page = await store.audit.page(10, cursor)
        seen += page.entries
        if not (cursor := page.next_cursor):
            break
        assert len(page.entries) == 10
    assert seen == entries[::-1]
    assert (await store.audit.page(45)).next_cursor == ""


async def test_a_page_ends_early_when_its_entries_are_large(store: Store) -> None:
    for n in range(12):
        await record(store, n, after="x" * 200_000)
    first = await store.audit.page(100)
    assert (len(first.entries), first.next_cursor != "") == (6, True)
    second = await store.audit.page(100, first.next_cursor)
    assert [entry.seq for entry in first.entries + second.entries] == [*range(12, 0, -1)]


async def test_a_cursor_of_nobody_is_refused(store: Store) -> None:
    for cursor in ("x", "0-0", "1", "99999999999999999999-0", "-1-1", "1-1 "):
        with pytest.raises(errors.InvalidInput, match="not returned by a previous page"):
            await store.audit.page(10, cursor)
