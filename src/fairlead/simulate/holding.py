"""Holds, as in `rules.holds`, looked for among the sub-queues that may ask only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from fairlead.rules.holds import LEAST_PAUSE
from fairlead.rules.limits import Companions
from fairlead.rules.values import Policy
from fairlead.simulate.ages import NEVER
from fairlead.simulate.heads import Heads
from fairlead.simulate.limits import Hold, Limits
from fairlead.simulate.queues import SubQueue
from fairlead.simulate.values import Kind, Needs


class Holds:
    def __init__(self, policy: Policy, companions: Companions, limits: Limits, heads: Heads) -> None:
        self._policy, self._companions, self._limits, self._heads = policy, companions, limits, heads
        self._seen: set[Kind] = set()
        self._shares_companions = False
        self.touched: set[int] = set()  #: sub-queues whose head may have changed
        self._asks: list[tuple[int, str, int]] = []  #: a heap: instant, name, number of the sub-queue
        self._quiet: dict[str, set[int]] = {}  #: those that no limit overlaps for, by limit
        self._quiet_before: Mapping[str, set[int]] = {}  #: in what this is a fork of, which is not changed
        self._sets: dict[Needs, set[str]] = {}
        self._known_needs: dict[str, set[Needs]] = {}  #: of all forks, by limit
        self._holds: dict[str, Hold] = {}  #: by the name of the sub-queue
        self._ends: list[tuple[int, str]] = []  #: a heap: when holds have lasted long enough

    def fork(self, limits: Limits, heads: Heads) -> Holds:
        copy = Holds(self._policy, self._companions, limits, heads)
        copy._seen, copy._shares_companions = self._seen.copy(), True
        copy.touched, copy._asks, copy._ends = self.touched.copy(), self._asks.copy(), self._ends.copy()
        copy._quiet_before = (
            self._quiet if not self._quiet_before else _merged(self._quiet, self._quiet_before)
        )
        copy._known_needs = self._known_needs
        copy._sets, copy._holds = self._sets.copy(), self._holds.copy()
        return copy

    def see(self, kind: Kind) -> None:
        """A task of this kind enters a place."""
        if kind in self._seen:
            return
        if self._shares_companions:
            self._companions, self._shares_companions = self._companions.copy(), False
        self._seen.add(kind)
        fewer = self._companions.see(dict(kind.needs), kind.capabilities)
        for name in fewer:
            for needs in self._known_needs.get(name, ()):
                self._sets.pop(needs, None)
        for name in fewer:
            for number in {*self._quiet.pop(name, ()), *self._quiet_before.get(name, ())}:
                self._will_ask(self._heads.queues[number])

    def left(self, queue: SubQueue, task: int, started: bool, now: int) -> None:
        hold = self._holds.get(queue.name)
        if hold and (started or hold.head == task):
            self._end(queue.name, hold, now)

    def begin(self, queue: SubQueue, asks_at: int | None, since: int | None) -> None:
        """`asks_at` is from when it may ask, if that is known, and `since` how long it has had a hold."""
        self.touched.discard(queue.number)
        self._watch(queue, asks_at)
        if since is not None and queue.head is not None and self._set_of(queue):
            self._hold(queue, since)

    def look(self, now: int) -> bool:
        """Reviews the holds, then makes those that are asked for; returns whether there were any."""
        some = bool(self.touched or self._holds)
        for number in self.touched:
            self._watch(self._heads.queues[number])
        self.touched.clear()
        for name in sorted(self._holds):
            self._review(name, self._holds[name], now)
        for queue in self._due(now):
            some = True
            self._postpone(queue, now)
            if self._may_hold(queue, now):
                self._hold(queue, now)
        return some

    def next_end(self, now: int) -> int:
        """When the next hold has lasted long enough, after `now`."""
        ends = self._ends
        while ends and (ends[0][0] <= now or not self._lasts_until(*ends[0])):
            heappop(ends)
        return ends[0][0] if ends else NEVER

    def _lasts_until(self, at: int, name: str) -> bool:
        return name in self._holds and self._holds[name].since + self._policy.hold_for == at

    # Asking

    def _watch(self, queue: SubQueue, asks_at: int | None = None) -> None:
        """A new head may ask from when it has waited long enough."""
        if queue.head is None:
            queue.watched, queue.asks_at = -1, None
        elif queue.watched != queue.head[1]:
            queue.watched = queue.head[1]
            patience = 0 if queue.place & 1 else self._policy.hold_after
            queue.asks_at = queue.head[2].arrival + patience if asks_at is None else asks_at
            self._will_ask(queue)

    def _will_ask(self, queue: SubQueue) -> None:
        """It asks at its instant, or when one of its limits overlaps with another."""
        if queue.asks_at is None:
            return
        if not self._set_of(queue):
            for name, _ in queue.needs:
                self._quiet.setdefault(name, set()).add(queue.number)
            return
        heappush(self._asks, (queue.asks_at, queue.name, queue.number))
        if len(self._asks) > 2 * self._heads.count + 64:
            self._drop_outdated()

    def _drop_outdated(self) -> None:
        queues = self._heads.queues
        self._asks = [ask for ask in set(self._asks) if queues[ask[2]].asks_at == ask[0]]
        heapify(self._asks)

    def _due(self, now: int) -> list[SubQueue]:
        due: list[SubQueue] = []
        while self._asks and self._asks[0][0] <= now and len(due) < self._policy.hold_looks:
            at, _, number = heappop(self._asks)
            queue = self._heads.queues[number]
            if queue.asks_at == at and queue not in due:
                due.append(queue)
        return due

    def _postpone(self, queue: SubQueue, now: int, lasted: int = 0) -> None:
        queue.asks_at = now + max(self._policy.hold_after, lasted, LEAST_PAUSE)
        self._will_ask(queue)

    def _set_of(self, queue: SubQueue) -> set[str]:
        """Its slots limits that overlap."""
        found = self._sets.get(queue.needs)
        if found is None:
            names = self._limits.slots_of(queue.needs)
            found = self._sets[queue.needs] = self._companions.overlapping(names)
            for name in names:
                self._known_needs.setdefault(name, set()).add(queue.needs)
        return found

    def _may_hold(self, queue: SubQueue, now: int) -> bool:
        names = self._set_of(queue)
        is_free = len(self._holds) < self._policy.most_holds and queue.name not in self._holds
        if not is_free or any(self._limits.uses[name].hold for name in names):
            return False
        return bool(self._limits.lacked_by(queue, now)) and self._helps(queue, names, now)

    def _helps(self, queue: SubQueue, names: Iterable[str], now: int) -> bool:
        """All that it lacks is held; that a worker serves it does not change."""
        return queue.lane is not None and {name for name, _ in self._limits.lacked_by(queue, now)} <= set(
            names
        )

    # Holding

    def _hold(self, queue: SubQueue, since: int) -> None:
        names, needs = self._set_of(queue), dict(queue.needs)
        assert queue.head is not None
        units = {name: needs[name] for name in names}
        hold = Hold(queue.number, queue.place >> 1, queue.head[2].number, since, units)
        self._holds[queue.name] = hold
        for name in names:
            self._limits.uses[name].hold = hold
        self._heads.put_aside(queue)
        heappush(self._ends, (since + self._policy.hold_for, queue.name))

    def _review(self, name: str, hold: Hold, now: int) -> None:
        queue, lasted = self._heads.queues[hold.queue], now - hold.since
        if lasted >= self._policy.hold_for or not self._helps(queue, self._set_of(queue), now):
            self._end(name, hold, now)
            self._postpone(queue, now, lasted)

    def _end(self, name: str, hold: Hold, now: int) -> None:
        del self._holds[name]
        for limit in hold.units:
            self._limits.uses[limit].hold = None
        self._heads.take_back(self._heads.queues[hold.queue])
        self._heads.show(hold.units, now)


def _merged(one: Mapping[str, set[int]], other: Mapping[str, set[int]]) -> dict[str, set[int]]:
    return {name: one.get(name, set()) | other.get(name, set()) for name in {*one, *other}}
