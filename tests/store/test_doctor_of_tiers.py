"""Faults that are planted in tiers and sessions are found, and named."""

from collections.abc import AsyncIterator

import pytest

from fairlead.model.task import Task
from fairlead.settings import Settings
from fairlead.settings.tiers import Tier
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.saved import Saved
from tests.store.busy import Command, tamper
from tests.store.namespace import claim_one, new

#: The manual edits, the invariants that they break, and words of the report. {E} is the elastic run.
FAULTS: dict[str, tuple[list[Command], set[str], str]] = {
    "a capacity that nobody has": ([("HSET", "capacity", "w", 9)], {"T1"}, "worker w counts 9"),
    "a wrong sum": ([("HSET", "meta", "capacity", 9)], {"T1"}, "a capacity of 9, it is 4"),
    "a limit that is not its tier's": ([("HSET", "limit:tier:medium", "limit", 3)], {"T1"}, "tier:medium"),
    "a run that is never shortened": ([("ZREM", "elastic:medium", "{E}")], {"S9"}, "elastic:medium"),
    "a run listed for a tier it lost": ([("ZADD", "elastic:slow", -1, "{E}")], {"S9"}, "elastic:slow"),
    "a tier that it does not hold": ([("HSET", "task:{E}", "tier", "slow")], {"S9"}, "may run as slow"),
    "a unit that was taken back twice": (
        [("HSET", "task:{E}", "revoked", "tier:slow=1")],
        {"I4", "S9"},
        "holds none of them",
    ),
    "a session that is never halted": ([("DEL", "sessions")], {"T2"}, "is not among the sessions"),
    "a client of a session that has ended": (
        [("ZADD", "attached", 5, "gone")],
        {"T2"},
        "waits for its client",
    ),
    "a count of sessions": ([("HSET", "meta", "sessions", 3)], {"T2"}, "counts 3 sessions"),
    "a revocation for nobody": (
        [("HSET", "relief", "ghost", 1)],
        {"T3"},
        "1 revocations are counted for task ghost",
    ),
    "a revocation of nothing": (
        [("HSET", "task:{E}", "relieves", "ghost:1"), ("HSET", "relief", "ghost", 1)],
        {"T3"},
        "nothing is taken back",
    ),
}


@pytest.fixture
def settings() -> Settings:
    tiers = {
        "fast": Tier(seconds=3),
        "medium": Tier(seconds=10, limit="50%"),
        "slow": Tier(seconds=30, limit=1),
    }
    return Settings(tiers={**tiers})


@pytest.fixture
async def runs(store: Store) -> AsyncIterator[tuple[Task, Task]]:
    """A slow task, an elastic run of medium length and a session."""
    await store.workers.register("w", capacity=4)
    await store.submit_one(new(duration="slow"))
    await claim_one(store)
    await store.submit_one(new())
    elastic = await claim_one(store)
    assert (await store.claim("w", idle=True, acknowledged=[])).tasks == []
    submitted = await store.submit_one(new(duration="interactive"))
    healthy = await Saved.of(store.connection)
    yield elastic, await store.get(submitted.task_id)
    await healthy.put_back()


async def test_every_planted_fault_is_named(store: Store, clock: Clock, runs: tuple[Task, Task]) -> None:
    names = {"E": runs[0].task_id}
    healthy = await Saved.of(store.connection)
    assert not await examine(store.connection, now_ms=clock.now, twice=False)
    for fault, (commands, broken, words) in FAULTS.items():
        await healthy.put_back()
        named = [tuple(_named(word, names) for word in command) for command in commands]
        await tamper(store.connection, *named)
        breaches = await examine(store.connection, now_ms=clock.now, twice=False)
        assert {breach.invariant for breach in breaches} == broken, (fault, breaches)
        assert any(words in breach.sentence for breach in breaches), (fault, breaches)


def _named(word: str | int | bytes, names: dict[str, str]) -> str | int | bytes:
    return word.format_map(names) if isinstance(word, str) else word
