"""Estimates that are read in Python are those that the store reads (lua/lib/forecasts.lua)."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.estimates.curve import GONE_AT
from fairlead.estimates.reading import Need, Newcomer, estimate_of
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new, raw

LIMITS: dict[str, Slots | Rate] = {
    "gpu": Slots(limit=3),
    "wide": Slots(limit=50),
    "api": Rate.of("60/min", burst=2),
}
SIZES = (2, 3, 5, 10, 12, 20, 40)  # of tasks that need several units
UNITS = {"gpu": (1, 2, 3), "wide": (1, 2, 4, 9, 11, 12, 33, 41, 50), "api": (1, 2)}
STRIDE = 100_000  # between the tags of an account


def random_forecast(dice: random.Random, at: int) -> dict[str, Any]:
    lane = random_curve(dice)
    names = [f"1n@{name}" for name in LIMITS if dice.random() < 0.5]
    names += [f"{name}#{size}" for name in names for size in SIZES if dice.random() < 0.3]
    factors = [[[dice.randint(300, 3_000) for _ in "ab"] for _ in "abc"] for _ in "012"]
    head = {"at": at, "run": dice.randint(0, 9_000), "lengths": [1_000, 60_000], "corrections": factors}
    paces = {f"soon@{name}": [dice.randint(0, 9_000)] for name in (*LIMITS, "wide#12") if dice.random() < 0.5}
    return {"head": head, "1n:*": lane} | paces | {name: random_curve(dice) for name in names}


def random_curve(dice: random.Random) -> list[int]:
    if dice.random() < 0.1:
        return []
    tags = sorted(dice.randrange(0, 12) * STRIDE // 2 for _ in range(dice.randint(1, 5)))
    seqs = sorted(dice.sample(range(30), len(tags)))
    p50 = sorted(dice.randrange(0, 90_000) for _ in tags)
    ranks = sorted(dice.randrange(0, 12) for _ in tags)
    gone = sorted(dice.randrange(0, 900) for _ in GONE_AT)
    header = [dice.randint(0, 9), dice.randint(0, 2_000), dice.randint(0, 4_000), dice.randint(0, 9_000)]
    header += gone
    points = zip(tags, seqs, ranks, p50, [int(ms * dice.uniform(1, 3)) for ms in p50], strict=True)
    return header + [value for point in points for value in point]


async def needs_of(store: Store, wanted: Mapping[str, int]) -> list[Need]:
    """As a newcomer finds them."""
    found = []
    for name, units in wanted.items():
        known = await raw(store).hgetall(store.connection.keys.key("limit", name))
        waiting, used = int(known.get(b"waiting", 0)), int(known.get(b"used", 0))
        limit = LIMITS[name]
        room, size = (limit.limit - used, limit.limit) if isinstance(limit, Slots) else (limit.burst, None)
        found.append(Need(name, units, room, waiting, size))
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_python_reads_what_the_store_reads(store: Store, clock: Clock, seed: int) -> None:
    dice = random.Random(seed)
    for name, limit in LIMITS.items():
        await store.limits.set(name, limit)
    await store.upkeep.elect("me", 60_000)
    await store.workers.register("w", capacity=1)
    await store.submit(new())
    await claim_one(store)
    held = await store.limits.acquire("gpu", units=3, lease_id="l") if seed % 2 else None
    read = set()
    for before in range(20):
        forecast = random_forecast(dice, clock.now)
        assert await store.estimates.save_forecast("me", forecast, 60_000)
        clock.pass_ms(dice.choice([0, 300, 2_000]))
        names = dice.sample(list(LIMITS), dice.randint(0, 2))
        wanted = {name: dice.choice(UNITS[name]) for name in names}
        needs = await needs_of(store, wanted)
        submitted = await store.submit_one(new(limits=wanted, user_id=dice.choice("ab")))
        key = store.connection.keys.key("task", submitted.task_id)
        tag, seq = (int(value) for value in await raw(store).hmget(key, "tag", "seq"))
        rank = await raw(store).zcount(store.connection.keys.key("order", "1n"), "-inf", tag) - 1
        mine = estimate_of(Newcomer(clock.now, 1, tag, seq, before, rank, 0, needs), forecast)
        theirs = submitted.estimate and (submitted.estimate.p50_seconds, submitted.estimate.p90_seconds)
        assert (mine and (mine.p50 / 1000, mine.p90 / 1000)) == theirs
        read.add(theirs)
    assert len(read) > 8
    if held:
        await store.limits.release(held)
    await store.upkeep.resign("me")


async def test_python_and_the_store_know_who_starts_at_once(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=2)
    await store.claim("w", idle=True)
    submitted = await store.submit_one(new())
    mine = estimate_of(Newcomer(clock.now, 1, 0, 1, before=0, rank=0, idle=1), None)
    assert mine and submitted.estimate
    assert (submitted.estimate.p50_seconds, submitted.estimate.p90_seconds) == (mine.p50, mine.p90 / 1000)
    behind = estimate_of(Newcomer(clock.now, 1, 0, 2, before=1, rank=1, idle=1), None)
    assert behind is None, "nothing is known without a forecast"
