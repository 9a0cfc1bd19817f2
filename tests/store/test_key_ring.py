"""The ring remembers keys for a moment, and never longer than they are good."""

from collections.abc import AsyncIterator, Callable

import pytest

from fairlead import errors
from fairlead.model.key import NewKey
from fairlead.store.access import key_ring
from fairlead.store.access.api_keys import ApiKeys, Seen
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.store import Store
from tests.store.namespace import raw
from tests.waiting import wait_until

FOREVER = 1_000_000.0


class Counting(ApiKeys):
    """Counts the requests to the store; `meanwhile` runs while the answer is on its way."""

    requests = 0

    async def meanwhile(self) -> None: ...

    async def find(self, key_text: str) -> Seen | None:
        self.requests += 1
        found = await super().find(key_text)
        await self.meanwhile()
        return found


@pytest.fixture(autouse=True)
def no_memory_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a key that is forgotten was forgotten for another reason."""
    monkeypatch.setattr(key_ring, "LONGEST_MEMORY", FOREVER)


@pytest.fixture
def keys(live_store: Store) -> Counting:
    return Counting(live_store)


@pytest.fixture
async def ring(keys: Counting) -> AsyncIterator[KeyRing]:
    async with KeyRing(keys, FOREVER) as ring:
        await wait_until(lambda: ring._listener.subscribed)
        yield ring


@pytest.fixture
async def new(ring: KeyRing, keys: Counting) -> NewKey:
    """A key that the ring has been notified of."""
    changes = ring._changes
    made = await keys.create("web", ["read"])
    await wait_until(lambda: ring._changes > changes)
    return made


async def test_a_key_is_requested_once(ring: KeyRing, keys: Counting, new: NewKey) -> None:
    for _ in range(5):
        key = await ring.check(new.key_text)
        assert key and key.id == new.api_key.id
    assert keys.requests == 1


async def test_a_wrong_id_or_secret_is_remembered_too(ring: KeyRing, keys: Counting, new: NewKey) -> None:
    for text in (new.key_text[:-3] + "xyz", f"flk_zzzzzzzz_{new.key_text[13:]}"):
        requests = keys.requests
        assert [await ring.check(text) for _ in range(3)] == [None] * 3
        assert keys.requests == requests + 1
    assert await ring.check(new.key_text)


async def test_nothing_is_remembered_for_longer_than_it_may(
    live_store: Store, keys: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_ring, "LONGEST_MEMORY", 0.05)
    made = await keys.create("web", ["read"])
    async with KeyRing(keys, FOREVER) as ring:
        await wait_until(lambda: ring._listener.subscribed)

        async def requested_again() -> bool:
            return bool(await ring.check(made.key_text)) and keys.requests > 3

        await wait_until(requested_again)


async def test_a_revocation_by_another_process_takes_effect_at_once(
    ring: KeyRing, new: NewKey, live_store: Store, open_store: Callable[..., Store]
) -> None:
    assert await ring.check(new.key_text)
    other = open_store(live_store.connection.keys.namespace)
    await other.api_keys.revoke(new.api_key.id)

    async def refused() -> bool:
        return await ring.check(new.key_text) is None

    await wait_until(refused)
    await other.close()


async def test_a_new_key_is_known_at_once(ring: KeyRing, keys: Counting, new: NewKey) -> None:
    assert await ring.check(new.key_text)
    rotated = await keys.rotate(new.api_key.id, 0)

    async def changed_over() -> bool:
        return await ring.check(new.key_text) is None and bool(await ring.check(rotated.key_text))

    await wait_until(changed_over)


async def test_an_answer_that_a_revocation_has_overtaken_is_not_remembered(
    ring: KeyRing, keys: Counting, new: NewKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def revoke() -> None:
        monkeypatch.undo()
        changes = ring._changes
        await keys.revoke(new.api_key.id)
        await wait_until(lambda: ring._changes > changes)

    monkeypatch.setattr(keys, "meanwhile", revoke)
    assert await ring.check(new.key_text)  # it was valid when the store was read
    assert await ring.check(new.key_text) is None


async def test_without_its_subscription_nothing_is_remembered(
    ring: KeyRing, keys: Counting, new: NewKey, live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await ring.check(new.key_text)
    await ring._listener.stop()
    ring.forget()
    requests = keys.requests
    for _ in range(3):
        assert await ring.check(new.key_text)
    assert keys.requests == requests + 3


async def test_remembered_keys_are_forgotten_when_the_subscription_is_lost(
    ring: KeyRing, keys: Counting, new: NewKey, live_store: Store
) -> None:
    assert await ring.check(new.key_text)
    await raw(live_store).execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    await wait_until(lambda: not ring._remembered)
    await wait_until(lambda: ring._listener.subscribed)
    assert await ring.check(new.key_text)
    assert await ring.check(new.key_text)
    assert keys.requests == 2


async def test_a_key_expires_while_it_is_remembered(ring: KeyRing, keys: Counting) -> None:
    made = await keys.create("web", ["read"], expires_seconds=0.4)

    async def expired() -> bool:
        return await ring.check(made.key_text) is None

    await wait_until(expired)


async def test_a_bounded_number_is_remembered_and_the_oldest_is_dropped(
    ring: KeyRing, keys: Counting, new: NewKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_ring, "MOST_REMEMBERED", 3)
    assert await ring.check(new.key_text)
    for n in range(10):
        assert await ring.check(f"no key {n}") is None
        assert len(ring._remembered) <= 3
    requests = keys.requests
    assert await ring.check(new.key_text)
    assert keys.requests == requests + 1


async def test_the_use_of_a_key_is_noted_in_the_background_once(
    ring: KeyRing, keys: Counting, new: NewKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []

    async def note_use(key_id: str) -> None:
        noted.append(key_id)
        await ApiKeys.note_use(keys, key_id)

    monkeypatch.setattr(keys, "note_use", note_use)
    for _ in range(3):
        await ring.check(new.key_text)

    async def used() -> bool:
        return (await keys.get(new.api_key.id)).last_used_at is not None

    await wait_until(used)
    assert noted == [new.api_key.id]


async def test_it_reports_that_the_store_is_unavailable(new: NewKey) -> None:
    away = Store.connect("redis://127.0.0.1:1")
    async with KeyRing(away.api_keys) as ring:
        with pytest.raises(errors.StoreUnavailable) as problem:
            await ring.check(new.key_text)
    await away.close()
    assert new.key_text[13:] not in repr(problem.value) + str(problem.value)
