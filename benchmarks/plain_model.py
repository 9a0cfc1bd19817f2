"""The model that the rule was designed with, looking at every lane for every start: an independent count.

It differs from the rule in two points. Native starts count for the budget only while a promoted task could
start too, and a promoted start while no native one could does not end the count. And fair shares are counted
in seconds of each run, known before it begins, in one ledger for the native and the promoted of a priority.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from fairlead.simulate.traces import Trace

NATIVE, PROMOTED = 0, 1
STEPS = {2: ((600_000, 1), (1_800_000, 0)), 1: ((1_200_000, 0),), 0: ()}  # by priority: after so many ms

Entry = tuple[int, int, int]  # tag, seq, number
Lane = tuple[int, int]  # priority, and whether promoted


@dataclass(frozen=True, slots=True)
class Rules:
    ages: bool = True
    budget: int | None = None  #: None: native and promoted tasks are one line
    fair: bool = False


class PlainModel:
    def __init__(self, trace: Trace, slots: int, limits: Mapping[str, int], rules: Rules) -> None:
        self._trace, self._free, self._limits, self._rules = trace, slots, limits, rules
        self._needs = [next(iter(trace.kinds[wanted].limits)) for wanted in trace.wants]
        self._used = dict.fromkeys(limits, 0)
        self._lanes: dict[Lane, dict[str, list[Entry]]] = {(p, way): {} for p in range(3) for way in (0, 1)}
        self._where: dict[int, Lane] = {}
        self._seq = 0
        self._counts = [0, 0, 0]  # native starts since the last promoted one, by priority
        self._served = [0, 0, 0]  # the tag of the latest start, by priority
        self._ledger: dict[tuple[int, int], int] = {}  # finish tags by owner and priority
        self.starts = [0] * len(trace)

    def run(self) -> Sequence[int]:
        """When each task starts, in ms."""
        trace = self._trace
        due = [(at, 1, number, trace.bases[number], NATIVE) for number, at in enumerate(trace.arrivals)]
        while due:
            now = due[0][0]
            while due and due[0][0] == now:
                _, happens, number, priority, way = heappop(due)
                if happens == 0:
                    self._free += 1
                    self._used[self._needs[number]] -= 1
                elif way == NATIVE:
                    self._join(number, priority, NATIVE)
                    for after, better in STEPS[priority] if self._rules.ages else ():
                        heappush(due, (now + after, 2, number, better, PROMOTED))
                elif number in self._where:
                    self._join(number, priority, PROMOTED)
            for number in self._starting():
                self.starts[number] = now
                heappush(due, (now + trace.durations[number], 0, number, 0, 0))
        return self.starts

    def _join(self, number: int, priority: int, way: int) -> None:
        self._seq += 1
        tag, account = 0, (self._trace.owners[number], priority)
        if self._rules.fair:
            tag = max(self._served[priority], self._ledger.get(account, 0))
            self._ledger[account] = tag + self._trace.durations[number]
        lane = self._where[number] = priority, way if self._rules.budget is not None else NATIVE
        heappush(self._lanes[lane].setdefault(self._needs[number], []), (tag, self._seq, number))

    def _starting(self) -> Iterator[int]:
        while self._free and (lane := self._best_lane()):
            entry = self._head(lane)
            assert entry
            tag, _, number = entry
            del self._where[number]
            self._served[lane[0]] = max(self._served[lane[0]], tag)
            self._free -= 1
            self._used[self._needs[number]] += 1
            yield number

    def _best_lane(self) -> Lane | None:
        for priority in range(3):
            native, promoted = ((priority, way) for way in (NATIVE, PROMOTED))
            if self._head(native) and self._head(promoted):
                is_turn = self._counts[priority] == self._rules.budget
                self._counts[priority] = 0 if is_turn else self._counts[priority] + 1
                return promoted if is_turn else native
            if self._head(native) or self._head(promoted):
                return native if self._head(native) else promoted
        return None

    def _head(self, lane: Lane) -> Entry | None:
        """The best of those that could start."""
        found: Entry | None = None
        for name, line in self._lanes[lane].items():
            while line and self._where.get(line[0][2]) != lane:
                heappop(line)
            if line and self._used[name] < self._limits[name] and (found is None or line[0] < found):
                found = line[0]
        return found
