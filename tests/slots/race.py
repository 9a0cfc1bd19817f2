"""Processes that race for the slots of a group, some of them killed, and what they recorded themselves."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from fairlead import errors
from fairlead.slots import Slot, SlotStore
from tests import warm
from tests.waiting import wait_until

GROUP = "race"
SKEW_SECONDS = 0.2
WAIT_SECONDS = 1.0
STOP = "stop"  # a file beside the records


@dataclass(frozen=True)
class Race:
    url: str
    folder: Path  # for the records
    limit: int
    processes: int
    kills: int
    seed: int
    kill_every: float = 0.1  # seconds
    lease_seconds: float = 1.5
    most_held_seconds: float = 0.3
    environment: Mapping[str, str] | None = None  # of the object store

    @property
    def slots(self) -> SlotStore:
        return SlotStore(self.url, max_skew_seconds=SKEW_SECONDS)

    async def are_free(self) -> bool:
        return (await self.slots.status(GROUP)).active == 0


class Hold(NamedTuple):
    """From after the slot was acquired until before it was released, or its holder was killed."""

    began: float
    ended: float
    slot: int
    fence: int
    waited: float


@dataclass(frozen=True)
class Raced:
    holds: list[Hold]  # by their begin
    kills: int
    killed_holders: int
    problems: Counter[str]  # by their codes
    seconds: float

    @property
    def most_at_once(self) -> int:
        most = now = 0
        # of two at the same instant the end comes first
        for _, by in sorted(
            [(hold.began, 1) for hold in self.holds] + [(hold.ended, -1) for hold in self.holds]
        ):
            most = max(most, now := now + by)
        return most

    @property
    def shared_slots(self) -> list[tuple[Hold, Hold]]:
        """Two that held the same slot at once, or whose fences are not in order."""
        last: dict[int, Hold] = {}
        wrong = []
        for hold in self.holds:
            before = last.get(hold.slot)
            if before and (before.ended > hold.began or before.fence >= hold.fence):
                wrong.append((before, hold))
            last[hold.slot] = hold
        return wrong

    @property
    def figures(self) -> dict[str, Any]:
        waits = quantiles([hold.waited for hold in self.holds], n=100)
        return {
            "acquired": len(self.holds),
            "acquired_per_second": round(len(self.holds) / self.seconds, 1),
            "wait_ms": {"p50": round(1000 * waits[49]), "p99": round(1000 * waits[98])},
            "kills": self.kills,
            "killed_while_holding": self.killed_holders,
            "gave_up": self.problems["limit_full"],
            "lost_leases": self.problems["lease_lost"],
            "store_unavailable": self.problems["slot_store_unavailable"],
            "most_at_once": self.most_at_once,
        }


async def run(race: Race) -> Raced:
    """Kills holders one after the other, starts others in their place, and lets the last ones finish."""
    chance, killed = random.Random(race.seed), list[tuple[Path, float]]()
    running = dict(_start(race, number) for number in range(race.processes))
    began = time.monotonic()
    for kill in range(race.kills):
        await asyncio.sleep(chance.uniform(0, 2 * race.kill_every))
        record = chance.choice(await _holders(running))
        process = running.pop(record)
        at = time.monotonic()
        process.kill()
        killed.append((record, at))
        running |= [_start(race, race.processes + kill)]
    (race.folder / STOP).touch()
    for process in running.values():
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == 0, process.exitcode
    seconds = time.monotonic() - began
    ends = {record: at for record, at in killed} | dict.fromkeys(running, time.monotonic())
    rows = {record: _lines(record) for record in ends}
    holds = sorted(hold for record, lines in rows.items() for hold in _holds(lines, ends[record]))
    return Raced(
        holds,
        race.kills,
        killed_holders=sum(_is_holding(rows[record]) for record, _ in killed),
        problems=Counter(line for lines in rows.values() for line in lines if " " not in line),
        seconds=seconds,
    )


def _holds(lines: list[str], killed_at: float) -> Iterator[Hold]:
    for line, following in pairwise([*lines, f"ended {killed_at}"]):
        what, _, rest = line.partition(" ")
        if what == "began":
            at, slot, fence, waited = rest.split()
            ended = following.partition(" ")[2]
            yield Hold(float(at), float(ended), int(slot), int(fence), float(waited))


def _lines(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


def _is_holding(lines: list[str]) -> bool:
    return bool(lines) and lines[-1].startswith("began")


async def _holders(records: Iterable[Path]) -> list[Path]:
    """As soon as there are any."""
    found: list[Path] = []

    def is_held() -> bool:
        found[:] = [record for record in records if _is_holding(_lines(record))]
        return bool(found)

    await wait_until(is_held, 60, "somebody holds a slot")
    return found


def _start(race: Race, number: int) -> tuple[Path, BaseProcess]:
    record = race.folder / str(number)
    process = warm.context().Process(target=_compete, args=(race, record), daemon=True)
    process.start()
    return record, process


def _compete(race: Race, record: Path) -> None:
    os.environ.update(race.environment or {})
    random.seed()  # processes that were forked from one would pause alike
    file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    asyncio.run(_compete_until_stopped(race, file))


async def _compete_until_stopped(race: Race, record: int) -> None:
    slots = race.slots
    while not (race.folder / STOP).exists():
        asked = time.monotonic()
        try:
            async with slots.acquire(
                GROUP, race.limit, wait=WAIT_SECONDS, lease_seconds=race.lease_seconds
            ) as slot:
                await _hold(race, record, slot, time.monotonic() - asked)
        except (errors.LeaseLost, errors.LimitFull, errors.SlotStoreUnavailable) as problem:
            os.write(record, f"{problem.code}\n".encode())


async def _hold(race: Race, record: int, slot: Slot, waited: float) -> None:
    os.write(record, f"began {time.monotonic()} {slot.slot_id} {slot.fence} {waited}\n".encode())
    try:
        await asyncio.sleep(random.uniform(0, race.most_held_seconds))
    finally:
        os.write(record, f"ended {time.monotonic()}\n".encode())
