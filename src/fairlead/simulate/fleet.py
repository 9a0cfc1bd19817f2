"""The workers: which profiles serve a kind of tasks, and which worker has a slot."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from fairlead.model.priority import Priority
from fairlead.rules.values import Worker
from fairlead.simulate.values import Kind

Audience = tuple[int, ...]  #: the profiles that serve a kind


class Slots:
    """The workers that have a slot of one sort: any, or one outside of the reserve."""

    def __init__(self, profiles: int, workers: int) -> None:
        self.free = [0] * workers  #: by worker
        self.of_profile = [0] * profiles
        self._heaps: list[list[int]] = [[] for _ in range(profiles)]  #: the free ones, and some that were
        self._listed = bytearray(workers)

    def fork(self) -> Slots:
        copy = Slots.__new__(Slots)
        copy.free, copy.of_profile = self.free.copy(), self.of_profile.copy()
        copy._heaps, copy._listed = [heap.copy() for heap in self._heaps], self._listed[:]
        return copy

    def set(self, worker: int, profile: int, free: int) -> None:
        self.of_profile[profile] += free - self.free[worker]
        self.free[worker] = free
        if free and not self._listed[worker]:
            self._listed[worker] = 1
            heappush(self._heaps[profile], worker)

    def first(self, profile: int) -> int:
        """The first of its workers with a slot, which there must be."""
        heap = self._heaps[profile]
        while not self.free[heap[0]]:
            self._listed[heappop(heap)] = 0
        return heap[0]


class Fleet:
    """A task starts on the first worker of the list that serves it and has a slot for it."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        profiles = {(worker.capabilities, worker.types): 0 for worker in workers}
        self._profiles = list(profiles)
        for number, profile in enumerate(self._profiles):
            profiles[profile] = number
        self._profile = [profiles[worker.capabilities, worker.types] for worker in workers]
        self._number = {worker.id: number for number, worker in enumerate(workers)}
        self._running = [0] * len(workers)
        self._others = [0] * len(workers)  #: those of them that were not submitted with high priority
        self._any = Slots(len(profiles), len(workers))
        self._open = Slots(len(profiles), len(workers))
        for number in range(len(workers)):
            self._count(number)

    def fork(self) -> Fleet:
        copy = Fleet.__new__(Fleet)
        copy._workers, copy._profiles, copy._profile = self._workers, self._profiles, self._profile
        copy._number = self._number
        copy._running, copy._others = self._running.copy(), self._others.copy()
        copy._any, copy._open = self._any.fork(), self._open.fork()
        return copy

    def audience(self, kind: Kind) -> Audience:
        return tuple(
            number
            for number, (capabilities, types) in enumerate(self._profiles)
            if kind.capabilities <= capabilities and (types is None or kind.type in types)
        )

    def is_full(self) -> bool:
        return not any(self._any.of_profile)

    def has_slot(self, audience: Audience, base: int) -> bool:
        of_profile = (self._any if base == Priority.HIGH else self._open).of_profile
        return any(of_profile[profile] for profile in audience)

    def free_slots(self, audience: Audience, base: int) -> int:
        of_profile = (self._any if base == Priority.HIGH else self._open).of_profile
        return sum(of_profile[profile] for profile in audience)

    def take(self, audience: Audience, base: int) -> int:
        slots = self._any if base == Priority.HIGH else self._open
        worker = min(slots.first(profile) for profile in audience if slots.of_profile[profile])
        self._add(worker, base, 1)
        return worker

    def occupy(self, name: str, base: int) -> int:
        """A run that is there from the beginning; its worker may have more than it should."""
        worker = self._number[name]
        self._add(worker, base, 1)
        return worker

    def give_back(self, worker: int, base: int) -> None:
        self._add(worker, base, -1)

    def _add(self, worker: int, base: int, count: int) -> None:
        self._running[worker] += count
        if base != Priority.HIGH:
            self._others[worker] += count
        self._count(worker)

    def _count(self, worker: int) -> None:
        of, profile = self._workers[worker], self._profile[worker]
        free = max(0, of.capacity - self._running[worker])
        self._any.set(worker, profile, free)
        self._open.set(worker, profile, max(0, min(free, of.capacity - of.reserve - self._others[worker])))
