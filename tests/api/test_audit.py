"""The audit over HTTP: what was changed by hand, page by page, and whether the list is intact."""

import httpx

from fairlead.store.store import Store
from tests.api.requests import good, refused
from tests.store.namespace import raw

AUDIT = "/api/v1/audit"


async def test_entries_are_listed_the_latest_first(api: httpx.AsyncClient, store: Store) -> None:
    assert good(await api.get(AUDIT)) == {"entries": [], "next_cursor": None}
    first = await store.audit.record("ann", "set_limit", "gpu", {"limit": 1}, {"limit": 2}, "more work")
    await store.audit.record("bob", "drain", "w", None, {"status": "draining"})
    answer = good(await api.get(AUDIT))
    assert [entry["act"] for entry in answer["entries"]] == ["drain", "set_limit"]
    entry = answer["entries"][1]
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "seq": 1,
        "actor": "ann",
        "act": "set_limit",
        "subject": "gpu",
        "before": {"limit": 1},
        "after": {"limit": 2},
        "reason": "more work",
        "previous": "",
        "hash": first.hash,
    }


async def test_they_are_paged(api: httpx.AsyncClient, store: Store) -> None:
    for n in range(5):
        await store.audit.record("ann", "drain", f"w{n}", None, None)
    seen, cursor = [], ""
    while cursor is not None:
        page = good(await api.get(AUDIT, params={"limit": 2, "cursor": cursor}))
        seen += [entry["subject"] for entry in page["entries"]]
        cursor = page["next_cursor"]
    assert seen == ["w4", "w3", "w2", "w1", "w0"]
    refused(await api.get(AUDIT, params={"cursor": "x"}), 422, "invalid_input", "cursor")
    refused(await api.get(AUDIT, params={"cursor": "0-0"}), 422, "invalid_input", "cursor")
    refused(await api.get(AUDIT, params={"limit": 0}), 422, "invalid_input", "limit")


async def test_an_edited_entry_is_found(api: httpx.AsyncClient, store: Store) -> None:
    await store.audit.record("ann", "drain", "w", None, None)
    assert good(await api.get(f"{AUDIT}/verify")) == {"problems": []}
    key = store.connection.keys.key("audit")
    kept = await raw(store).xrange(key)
    await raw(store).delete(key)
    assert good(await api.get(f"{AUDIT}/verify")) == {"problems": ["the entries after 0 were removed"]}
    for place, fields in kept:
        await raw(store).xadd(key, fields, id=place)
