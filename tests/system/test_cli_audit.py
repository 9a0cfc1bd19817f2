"""Every change from the command line is recorded in the audit, and a command reads it."""

import json

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.commands import Shell


async def noted(store: Store) -> list[tuple[str, str]]:
    """Act and subject, the oldest first."""
    return [(entry.act, entry.subject) for entry in reversed((await store.audit.page()).entries)]


async def test_limits_that_are_set_or_freed(live_store: Store, shell: Shell) -> None:
    await shell.run("limit", "set", "gpu", "--limit", "2")
    await shell.run("limit", "set", "gpu", "--limit", "3")
    await live_store.limits.acquire("gpu", lease_id="stuck")
    await shell.run("limit", "release", "gpu", "stuck")  # without --force it only says what it would do
    await shell.run("limit", "release", "gpu", "stuck", "--force")
    assert await noted(live_store) == [
        ("set_limit", "gpu"),
        ("set_limit", "gpu"),
        ("force_release", "gpu/stuck"),
    ]
    changed = (await live_store.audit.page()).entries[1]
    assert (changed.before["limit"], changed.after["limit"]) == (2, 3)
    assert changed.actor.endswith(" (command line)")
    assert await live_store.audit.verify() == []


async def test_workers_that_are_drained(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w")
    await shell.run("workers", "drain", "w")
    await shell.run("workers", "drain", "nobody")
    assert await noted(live_store) == [("drain", "w")]


async def test_dead_letters_that_are_replayed_or_purged(live_store: Store, shell: Shell) -> None:
    await live_store.submit_one(task := NewTask(task_type="draw", max_wait_seconds=0.001))

    async def dies() -> None:
        while not (await live_store.dead_letters.page()).tasks:
            await live_store.promote()

    await dies()
    await shell.run("dlq", "replay", task.task_id)
    await shell.run("dlq", "purge", "--all")  # no task matches
    assert await noted(live_store) == [("replay", "1 task")]
    (entry,) = (await live_store.audit.page()).entries
    assert entry.after == {"replayed": [task.task_id], "count": 1}


async def test_keys(live_store: Store, shell: Shell) -> None:
    key_text = (await shell.run("key", "create", "--name", "web", "--scope", "read")).out.strip()
    (first,) = await live_store.api_keys.all()
    rotated = (await shell.run("key", "rotate", first.id)).out.strip()
    await shell.run("key", "revoke", rotated)
    acts = ("create_key", first.id), ("rotate_key", first.id), ("revoke_key", rotated[4:12])
    assert await noted(live_store) == list(acts)
    written = repr((await live_store.audit.page()).entries)
    assert key_text[13:] not in written and rotated[13:] not in written


async def test_the_entries_are_listed_the_latest_first(live_store: Store, shell: Shell) -> None:
    await live_store.audit.record("ann", "set_limit", "gpu", {"limit": 1}, {"limit": 2}, "more work")
    entry = await live_store.audit.record("ann", "drain", "w", None, {"status": "draining"})
    _, first, second = (await shell.run("audit", "list")).out.splitlines()
    number, _, *words = first.split()
    assert (number, words) == ("2", ["ann", "drain", "w", "-", '{"status":"draining"}', "-"])
    assert second.split()[3:] == ["set_limit", "gpu", '{"limit":1}', '{"limit":2}', "more", "work"]
    answer = json.loads((await shell.run("audit", "list", "--limit", "1", "--output", "json")).out)
    (shown,) = answer["entries"]
    assert (shown["seq"], shown["act"], shown["hash"]) == (2, "drain", entry.hash)


async def test_entries_that_were_taken_out_are_found(live_store: Store, shell: Shell) -> None:
    assert (await shell.run("audit", "verify")).out == "The audit is empty.\n"
    entry = await live_store.audit.record("ann", "drain", "w", None, None)
    intact = await shell.run("audit", "verify")
    says = f"Every entry up to 1 is as it was written. Hash of the last: {entry.hash}\n"
    assert (intact.code, intact.out) == (0, says)
    client, key = live_store.connection.client, live_store.connection.keys.key("audit")
    kept = await client.dump(key)
    await client.delete(key)
    emptied = await shell.run("audit", "verify")
    assert (emptied.code, emptied.out) == (1, "the entries after 0 were removed\n")
    as_json = await shell.run("audit", "verify", "--output", "json")
    assert (as_json.code, json.loads(as_json.out)["last_hash"]) == (1, None)
    await client.restore(key, 0, kept or b"")  # the doctor looks at it when the test is over
