"""In which order tasks started, from the outbox: beside the rule, and beside the simulation."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.replay_traces import Part
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
    ended: int = 0  #: ms
    moved: bool = False  #: promoted


async def starts_of(store: Store) -> list[Start]:
    """In the order of their submits."""
    connection, found = store.connection, {}
    entries = await connection.client.xrange(connection.keys.key("events"))
    rows = (row for _, fields in entries for row in rows_of(fields[b"events"]))
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
            found[row.task].ended = row.at
        elif row.act == "promote":
            found[row.task].moved = True
    return [start for start in found.values() if start.started >= 0]


def inversions(starts: Sequence[Start]) -> int:
    """Starts before a better task that needed no more, and therefore could have started too."""
    native = [start for start in starts if not start.moved]
    return sum(_passes_by(start, native) for start in native)


def _passes_by(start: Start, others: Sequence[Start]) -> bool:
    own = needs(start.needs)
    return any(
        other.came < start.started < other.started
        and (other.place[0], other.tag) < (start.place[0], start.tag)
        and needs(other.needs).items() <= own.items()
        for other in others
    )


def compare_with_simulation(part: Part, starts: Sequence[Start]) -> float:
    """Which share of the tasks has the same place in the order of starts, for the same arrivals and runs.

    Runs are as long as they were with the time in which the worker reported and took the next task.
    """
    kinds: dict[str, Kind] = {}
    tasks = []
    for number, start in enumerate(starts):
        kind = kinds.setdefault(start.needs, Kind.of(start.task_type, (), needs(start.needs)))
        tasks.append(Task(number, kind, start.base, start.account, start.arrival, start.ended - start.at))
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
    return sum(one == other for one, other in zip(expected, real, strict=True)) / len(real)
