"""The state of a simulation, and the acts that change it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from random import Random

from fairlead.model.priority import Priority
from fairlead.rules.fairness import stride_of
from fairlead.rules.limits import Companions
from fairlead.simulate.ages import Ageing
from fairlead.simulate.fleet import Fleet
from fairlead.simulate.heads import Heads, better
from fairlead.simulate.holding import Holds
from fairlead.simulate.limits import Limits
from fairlead.simulate.queues import Entry, SubQueue
from fairlead.simulate.refills import Refills
from fairlead.simulate.runs import Run
from fairlead.simulate.shares import Shares
from fairlead.simulate.values import BY_AGE, NATIVE, PLACES, Needs, Running, Snapshot, Task

NOWHERE, STARTED = len(PLACES), len(PLACES) + 1  #: beside the places

Duration = Callable[[Task], int]
Ended = Callable[[int, int], None]


class Board:
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self._policy = snapshot, snapshot.policy
        self.now = snapshot.now
        self._seq = max([snapshot.last_seq, *(waiting.seq for waiting in snapshot.waiting)])
        self._where = bytearray([NOWHERE]) * len(snapshot.waiting)  #: the place of each task
        self._streaks = [snapshot.streaks.get(priority, 0) for priority in Priority]
        self._shares = Shares.of(snapshot)
        self._limits = Limits(snapshot.limits, self._policy.tiers)
        self._fleet = Fleet(snapshot.workers)
        self._heads = Heads(self._limits, self._fleet, snapshot.paused_types)
        companions = snapshot.companions.copy() if snapshot.companions else Companions()
        self._holds = Holds(self._policy, companions, self._limits, self._heads)
        self._refills = Refills(self._limits)
        self._ageing = {place: Ageing.of(place, self._policy) for place in BY_AGE}
        self._runs = [self._occupy(fence, running) for fence, running in enumerate(snapshot.running)]
        self._queue_waiting()
        self._ends: list[tuple[int, int, Run]] = []  #: a heap; a run that became shorter is in it twice
        self._fence = len(self._runs)
        self._duration: Duration | None = None
        self._ended: Ended | None = None
        self._learns = True

    def _copy_to(self, copy: Board) -> None:
        copy.snapshot, copy._policy, copy.now, copy._seq = self.snapshot, self._policy, self.now, self._seq
        copy._where, copy._streaks, copy._runs = self._where[:], self._streaks.copy(), self._runs
        copy._shares, copy._limits, copy._fleet = self._shares.fork(), self._limits.fork(), self._fleet.fork()
        copy._heads = self._heads.fork(copy._limits, copy._fleet)
        copy._holds = self._holds.fork(copy._limits, copy._heads)
        copy._refills = self._refills.fork(copy._limits)
        copy._ageing = {place: ageing.fork() for place, ageing in self._ageing.items()}
        copy._ends, copy._fence = [], len(self._runs)

    def _occupy(self, fence: int, running: Running) -> Run:
        run = Run(running.number, running.needs, running.base, running.account, running.started, fence)
        self._limits.occupy(running.needs)
        if running.worker is not None:
            run.worker = self._fleet.occupy(running.worker, running.base)
        if running.tier is not None:
            run.tier = running.tier
        return run

    def _queue_waiting(self) -> None:
        by_queue: dict[int, list[Entry]] = {}
        by_place: list[list[Entry]] = [[] for _ in PLACES]
        numbers = {place: number for number, place in enumerate(PLACES)}
        for task, name, tag, seq, stride in self.snapshot.waiting:
            place = numbers[name]
            entry = (tag, seq, task, stride)
            by_place[place].append(entry)
            by_queue.setdefault(self._heads.queue_of(task.kind, place).number, []).append(entry)
            self._where[task.number] = place
            if not task.is_probe:
                self._holds.see(task.kind)
        for place, entries in enumerate(by_place):
            self._shares.by_place[place].waiting += len(entries)
            if place in self._ageing:
                self._ageing[place].begin(entries, self._where)
        for number, entries in by_queue.items():
            queue = self._heads.queues[number]
            queue.earlier = sorted(entries, key=lambda entry: entry[:2])
            queue.find_head(self._where)
            self._has_new_head(queue)
            self._refills.enter(queue.rates, len(entries))
        self._begin_holds()

    def _begin_holds(self) -> None:
        for queue in self._heads.all_queues():
            if queue.name:
                self._holds.begin(
                    queue, self.snapshot.asks.get(queue.name), self.snapshot.held.get(queue.name)
                )

    # Waiting

    def submit(self, task: Task) -> None:
        """Queue it now: a task of the arrivals or, from within `ended`, one that follows another."""
        if task.number >= len(self._where):
            self._where.extend([NOWHERE] * (task.number + 1 - len(self._where)))
        factor = self._shares.factor(task.account) if task.factor is None else task.factor
        self._enter(task, NATIVE[task.base], stride_of(task.weight, factor))

    def _enter(self, task: Task, place: int, stride: int) -> None:
        if not task.is_probe:
            self._holds.see(task.kind)
        ledger = self._shares.by_place[place]
        reserved = task.reserved.get(PLACES[place]) if task.reserved else None
        if reserved:
            tag, seq = max(ledger.v, reserved[0]), reserved[1]
        else:
            self._seq = seq = self._seq + 1
            tag = ledger.reserve(task.account, stride)
        ledger.waiting += 1
        self._where[task.number] = place
        entry = (tag, seq, task, stride)
        if place in self._ageing:
            self._ageing[place].add(entry)
        queue = self._heads.queue_of(task.kind, place)
        heappush(queue.later, entry)
        self._refills.enter(queue.rates)
        if queue.head is None or entry < queue.head:
            was_empty = queue.head is None
            queue.head = entry
            self._has_new_head(queue, was_empty)

    def _promote(self, entry: Entry, place: int) -> None:
        _, _, task, stride = entry
        self._leave(task, self._heads.queue_of(task.kind, place), NOWHERE)
        self._enter(task, BY_AGE[place], stride)

    def _leave(self, task: Task, queue: SubQueue, to: int) -> None:
        self._where[task.number] = to
        ledger = self._shares.by_place[queue.place]
        ledger.waiting -= 1
        if not ledger.waiting and not self.snapshot.jobs_open:
            ledger.run_dry()
        self._refills.leave(queue.rates)
        if queue.head is not None and queue.head[2] is task:
            queue.find_head(self._where)
            self._has_new_head(queue)
        if queue.name:
            self._holds.left(queue, task.number, to == STARTED, self.now)

    def _has_new_head(self, queue: SubQueue, was_empty: bool = False) -> None:
        self._heads.changed(queue, was_empty)
        if queue.name:
            self._holds.touched.add(queue.number)

    # Running

    def _start_best(self) -> int | None:
        """The number of the task that starts next at this instant, if any can."""
        while queue := self._best():
            lacking = self._limits.lacked_by(queue, self.now)
            if not lacking:
                return self._start(queue)
            self._relieve(queue, lacking)
        return None

    def _best(self) -> SubQueue | None:
        if self._fleet.is_full():
            return None
        budget = self._policy.budget
        for priority in Priority:
            native = self._heads.first_of(2 * priority, self.now)
            if priority is Priority.LOW or (native and budget and self._streaks[priority] < budget):
                found = native
            else:
                promoted = self._heads.first_of(2 * priority + 1, self.now)
                found = (promoted or native) if budget else better(native, promoted)
            if found:
                return found
        return None

    def _start(self, queue: SubQueue) -> int:
        assert queue.head is not None
        tag, _, task, _ = queue.head
        if task.is_probe:
            self._leave(task, queue, STARTED)
            return task.number
        place, budget = queue.place, self._policy.budget
        self._streaks[place >> 1] = 0 if place & 1 else min(self._streaks[place >> 1] + 1, budget)
        ledger = self._shares.by_place[place]
        if tag > ledger.v:
            ledger.v = tag
        self._leave(task, queue, STARTED)
        self._limits.take(queue.needs, self.now)
        self._refills.taken(queue.rates)
        self._run(task, queue)
        return task.number

    def _run(self, task: Task, queue: SubQueue) -> None:
        kind, now = task.kind, self.now
        run = Run(task.number, queue.needs, task.base, task.account, now, self._fence)
        self._fence += 1
        run.worker = self._fleet.take(self._heads.audience(queue), task.base)
        lasts = task.duration if self._duration is None else self._duration(task)
        if kind.tier is not None:
            tier = kind.tier
            if kind.elastic:
                taken = self._limits.take_tiers(tier, queue.place >> 1, now)
                tier += len(taken)
                run.needs, run.tier = run.needs + taken, tier
                self._add_elastic(run)
            lasts = min(lasts, self._policy.tiers[tier].ms)
        run.end = now + max(0, lasts)
        heappush(self._ends, (run.end, run.fence, run))

    def _end(self, run: Run) -> None:
        self._limits.elastic.drop(run)
        if run.worker >= 0:
            self._fleet.give_back(run.worker, run.base)
        self._free(run.needs)
        if self._learns:
            self._shares.learn(run.account, self.now - run.started)
        if self._ended is not None:
            self._ended(run.number, self.now)

    def _free(self, needs: Needs) -> None:
        self._limits.give_back(needs)
        self._heads.show([name for name, _ in needs], self.now)

    # Elastic runs

    def draw_victims(self, dice: Random) -> None:
        """Which elastic run becomes shorter is drawn; otherwise it is the youngest."""
        self._limits.elastic.dice = dice

    def _add_elastic(self, run: Run) -> None:
        """If it is the only one that can give back a tier, what lacks that tier may be able to start now."""
        elastic = self._limits.elastic
        is_new = run.tier > 0 and not elastic.has(run.tier)
        elastic.add(run)
        if is_new:
            self._heads.show(self._limits.names_of_tiers[1:], self.now)

    def _relieve(self, queue: SubQueue, lacking: Needs) -> None:
        """An elastic run becomes shorter, and its worker confirms that at once."""
        tiers = self._limits.relief(lacking, queue.place >> 1, queue.number, self.now)
        assert tiers is not None
        shortest, longest = tiers
        run, to = self._limits.elastic.victim(longest), shortest - 1
        self._limits.elastic.drop(run)
        given = set(self._limits.names_of_tiers[to + 1 :])
        freed = tuple(need for need in run.needs if need[0] in given)
        run.needs = tuple(need for need in run.needs if need[0] not in given)
        run.tier = to
        self._limits.elastic.add(run)
        end = max(self.now, run.started + self._policy.tiers[to].ms)
        if end < run.end:
            run.end = end
            heappush(self._ends, (end, run.fence, run))
        self._free(freed)
