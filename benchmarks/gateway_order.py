"""In which order tasks started, from the outbox: beside the rule, and beside the simulation."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from benchmarks.gateway_traces import Part
from fairlead.rules.limits import Slots
from fairlead.rules.values import Policy, Worker
from fairlead.simulate.engine import Simulation
from fairlead.simulate.values import Kind, Snapshot, Task
from fairlead.store.names import needs
from fairlead.store.records import rows_of
from fairlead.store.store import Store


@dataclass(slots=True)
class Start:
    """A task that started once; places in the outbox are counted from 0."""

    task_id: str
    base: int
    account: str
    task_type: str
    needs: str
    came: int
    arrival: int  #: ms
    started: int = -1
    at: int = 0  #: ms
    place: str = ""
    tag: int = 0
    done: int = -1
    ended: int = 0  #: ms
    moved: bool = False  #: promoted


async def starts_of(store: Store) -> list[Start]:
    """In the order of their submits."""
    connection = store.connection
    found: dict[str, Start] = {}
    command = ("XRANGE", connection.keys.key("events"), "-", "+")
    (entries,) = await connection.read(command, paged=True)
    rows = (row for _, fields in entries for row in rows_of(fields[1]))
    for count, row in enumerate(rows):
        detail = row.detail
        if row.act == "submit":
            found[row.task] = Start(
                row.task,
                int(detail["priority"]),
                detail.get("fair") or "",
                detail["type"],
                detail.get("needs") or "",
                count,
                row.at,
            )
        elif row.act == "claim":
            start = found[row.task]
            start.started, start.at, start.place, start.tag = (
                count,
                row.at,
                detail["place"],
                int(detail["tag"]),
            )
        elif row.act == "complete":
            found[row.task].done, found[row.task].ended = count, row.at
        elif row.act == "promote":
            found[row.task].moved = True
    return [start for start in found.values() if start.started >= 0]


def inversions(starts: Sequence[Start]) -> int:
    """Starts before a better task that needed no more, and therefore could have started too."""
    native = [start for start in starts if not start.moved]
    entered = [(one.came, False, one) for one in native]
    events = sorted([*entered, *((one.started, True, one) for one in native)], key=itemgetter(0))
    waiting: dict[str, Start] = {}
    count = 0
    for _, starts_now, one in events:
        if starts_now:
            del waiting[one.task_id]
            count += any(_goes_before(other, one) for other in waiting.values())
        else:
            waiting[one.task_id] = one
    return count


def _goes_before(other: Start, start: Start) -> bool:
    is_better = (other.place[0], other.tag) < (start.place[0], start.tag)
    return is_better and needs(other.needs).items() <= needs(start.needs).items()


def compare_with_simulation(part: Part, starts: Sequence[Start]) -> float:
    """Which share of the tasks starts in the same order, for the same arrivals and runs.

    That is the longest line of tasks whose order is the same: one that starts elsewhere is left out alone. A
    slot that the worker was late to fill is free for the simulation only when it was filled.
    """
    free_at = _free_at(starts)
    kinds: dict[str, Kind] = {}
    tasks = []
    for number, start in enumerate(starts):
        kind = kinds.setdefault(start.needs, Kind.of(start.task_type, (), needs(start.needs)))
        tasks.append(Task(number, kind, start.base, start.account, start.arrival, free_at[number] - start.at))
    snapshot = Snapshot(
        now=starts[0].arrival,
        policy=Policy(
            low_to_medium=600_000 // part.faster,
            low_to_high=1_800_000 // part.faster,
            medium_to_high=1_200_000 // part.faster,
            hold_after=30_000 // part.faster,
        ),
        workers=[Worker("w", capacity=part.slots)],
        limits={name: Slots(limit) for name, limit in part.limits.items()},
    )
    expected = [number for number, _ in Simulation(snapshot, arrivals=tasks).starts()]
    real = sorted(range(len(starts)), key=lambda number: starts[number].started)
    return share_in_order(real, expected)


def share_in_order(real: Sequence[int], expected: Sequence[int]) -> float:
    """Of the longest line that is in the same order in both."""
    place = {number: index for index, number in enumerate(expected)}
    ends: list[int] = []  # of the best line of each length
    for index in (place[number] for number in real):
        at = bisect_left(ends, index)
        ends[at : at + 1] = [index]
    return len(ends) / len(real)


def _free_at(starts: Sequence[Start]) -> list[int]:
    """When the slot of each task was free: if somebody waited, only when it was filled."""
    ends = [(start.done, number, False) for number, start in enumerate(starts)]
    events = sorted([*ends, *((start.started, number, True) for number, start in enumerate(starts))])
    found, freed = [start.ended for start in starts], deque[int]()
    for _, number, starts_now in events:
        if not starts_now:
            freed.append(number)
        elif freed:
            before = freed.popleft()
            if starts[number].arrival < starts[before].ended:
                found[before] = starts[number].at
    return found
