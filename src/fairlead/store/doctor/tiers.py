"""Checks of tiers: shares of the capacity, runs that may be shortened, sessions, and what is taken back."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fairlead.model.states import State
from fairlead.settings.pipelines import SERVICE
from fairlead.settings.tiers import TIER
from fairlead.store.doctor.snapshot import Breach, Fields, Members, Snapshot, differences, number
from fairlead.store.names import needs

WRITTEN = re.compile(r"([^=,]+)=(\d+)/(\d+)(%?)")


class Tier(NamedTuple):
    name: str
    ms: int
    size: int
    is_share: bool


def tiers_of(s: Snapshot) -> list[Tier]:
    """The shortest first."""
    found = WRITTEN.findall(s.meta.get("tiers_applied", ""))
    return [Tier(name, int(ms), int(size), bool(sign)) for name, ms, size, sign in found]


def capacity(s: Snapshot) -> Iterator[Breach]:
    """T1: the capacity that shares are of is that of the listed workers, and the limits follow it."""
    known, counted = s.hashes.get("worker", {}), s.hash("capacity")
    for worker, record in known.items():
        right = number(record, "capacity") if "profile" in record and _runs_tasks(record) else 0
        if (have := number(counted, worker)) != right:
            yield Breach("T1", f"worker {worker} counts {have} for tiers, its capacity is {right}", worker)
    total = sum(number(counted, worker) for worker in counted)
    if number(s.meta, "capacity") != total:
        yield Breach(
            "T1", f"meta counts a capacity of {number(s.meta, 'capacity')}, it is {total}", "capacity"
        )
    most = math.inf
    for tier in tiers_of(s):
        most = min(most, max(1, total * tier.size // 100) if tier.is_share else tier.size)
        if number(s.limits.get(TIER + tier.name, {}), "limit") != most:
            yield Breach("T1", f"limit {TIER}{tier.name} is not {most:.0f}, as its tier says", tier.name)


def _runs_tasks(worker: Fields) -> bool:
    """Not only the steps of services, which tiers do not count."""
    return any(not name.startswith(SERVICE) for name in worker.get("types", "").split(",") if name)


def elastic_runs(s: Snapshot) -> Iterator[Breach]:
    """S9: an elastic run holds the tiers up to its own, and is found by its age."""
    order = {tier.name: i for i, tier in enumerate(tiers_of(s))}
    expected: Members = {}
    for task, record in s.tasks.items():
        holds = {**needs(record.get("optional", "")), **needs(record.get("revoked", ""))}
        if task not in s.leased:
            if holds:
                yield Breach("S9", f"task {task} does not run, but holds units of tiers", task)
            continue
        own = order.get(record.get("tier", ""))
        if "elastic" not in record or own is None:
            continue
        kept = {TIER + name for name, index in order.items() if 0 < index <= own}
        if needs(record.get("optional", "")).keys() != kept and not holds.keys() - {TIER + n for n in order}:
            yield Breach("S9", f"task {task} may run as {record['tier']}, but does not hold {kept}", task)
        if record.get("state") == State.EXECUTING and kept and "revoked" not in record:
            expected[f"elastic:{record['tier']}", task] = -number(record, "fence")
    found = s.members("elastic")
    for key, task, right, have in differences(expected, found):
        sentence = f"{key} has task {task} with score {have}, right is {right}"
        yield Breach("S9", sentence, f"{key} {task}")


def sessions(s: Snapshot) -> Iterator[Breach]:
    """T2: interactive tasks run or have ended, and those that run are found."""
    running = {task for task, record in s.leased.items() if "interactive" in record}
    for task in running ^ s.zset("sessions").keys():
        where = "is not among the sessions" if task in running else "is among the sessions, but does not run"
        yield Breach("T2", f"task {task} {where}", f"session {task}")
    if number(s.meta, "sessions") != len(running):
        yield Breach(
            "T2", f"meta counts {number(s.meta, 'sessions')} sessions, not {len(running)}", "sessions"
        )
    for task in s.zset("attached").keys() - running:
        yield Breach("T2", f"task {task} waits for its client, but does not run", f"client of {task}")
    for task, record in s.tasks.items():
        if "interactive" in record and record.get("state") in (State.QUEUED, State.DELAYED):
            yield Breach("T2", f"task {task} is interactive, but waits", task)


def relief(s: Snapshot) -> Iterator[Breach]:
    """T3: what is taken back for a waiting task is counted for it until it is free."""
    runs = {task: record["relieves"] for task, record in s.tasks.items() if "relieves" in record}
    right = Counter(text.rpartition(":")[0] for text in runs.values())
    counted = {task: number(s.hash("relief"), task) for task in s.hash("relief")}
    for task in sorted(right.keys() | counted.keys()):
        if right[task] != counted.get(task, 0):
            have = counted.get(task, 0)
            yield Breach("T3", f"{have} revocations are counted for task {task}, not {right[task]}", task)
    for task in runs:
        record = s.tasks[task]
        pending = "revoked" in record or ("interactive" in record and "stopping" in record)
        if not pending:
            yield Breach("T3", f"nothing is taken back from task {task}, but it is counted", f"of {task}")
    yield from _kept(s, {*runs.values()})


def _kept(s: Snapshot, heads: set[str]) -> Iterator[Breach]:
    """`heads`: waiting tasks with their priorities."""
    for tier in tiers_of(s)[:1]:
        limit = s.limits.get(TIER + tier.name, {})
        for priority in range(3):
            right, have = (
                sum(head.endswith(f":{priority}") for head in heads),
                number(limit, f"kept{priority}"),
            )
            if have != right:
                sentence = f"limit {TIER}{tier.name} keeps {have} units for tasks of {priority}, not {right}"
                yield Breach("T3", sentence, f"kept {priority}")
