"""What tests read behind the store's back."""

from typing import Any

from fairlead.store.records import JobRow, rows_of
from fairlead.store.store import Store


async def entries_of(store: Store) -> list[tuple[str, list[dict[str, Any]]]]:
    """The outbox, oldest first: of each act the id of its entry and its events."""
    entries: Any = await store.connection.client.xrange(store.connection.keys.key("events"))
    return [(number.decode(), events_in(entry)) for number, entry in entries]


async def events_of(store: Store) -> list[dict[str, Any]]:
    return [event for _, events in await entries_of(store) for event in events]


def events_in(entry: dict[bytes, bytes]) -> list[dict[str, Any]]:
    """The events of an entry of the outbox, or of a message to a listener (as `{b"events": message}`)."""
    events: list[dict[str, Any]] = []
    for row in rows_of(entry[b"events"]):
        event: dict[str, Any] = {"task": row.task, "act": row.act, "from": row.before, "to": row.after}
        event |= {"at": row.at, "fence": row.fence, "detail": row.detail}
        if isinstance(job := row.job, JobRow):
            event |= {"job": job.id, "step": job.step, "status": job.status}
        events.append(event)
    return events


async def keys_of(store: Store) -> list[str]:
    client, prefix = store.connection.client, store.connection.keys.prefix
    return sorted([key.decode() async for key in client.scan_iter(match=prefix + "*", count=1000)])
