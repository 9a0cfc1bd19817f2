"""What a user of the engine can ask for besides starts: bounds, forks, ends, and work that follows."""

from collections.abc import Sequence

import pytest

from fairlead.rules.fairness import Ledger
from fairlead.rules.limits import Slots
from fairlead.rules.values import Place, Worker
from fairlead.simulate.engine import Simulation
from fairlead.simulate.values import Kind, Running, Snapshot, Task, Waiting

KIND = Kind("draw", needs=(("gpu", 1),))


def queue_of(count: int, account: str = "ann", capacity: int = 1) -> Snapshot:
    """Tasks of 10 ms, one after the other."""
    return Snapshot(
        workers=[Worker("w", capacity=capacity)],
        limits={"gpu": Slots(1)},
        waiting=[
            Waiting(Task(number, KIND, account=account, duration=10), Place.MEDIUM, number, number + 1)
            for number in range(count)
        ],
    )


def numbers(simulation: Simulation) -> Sequence[int]:
    return [number for number, _ in simulation.starts()]


def test_starts_are_bounded_in_number_and_in_time_and_can_be_continued() -> None:
    simulation = Simulation(queue_of(6))
    assert list(simulation.starts(most=2)) == [(0, 0), (1, 10)]
    assert list(simulation.starts(until=35)) == [(2, 20), (3, 30)]
    assert list(simulation.starts(until=39)) == []
    assert list(simulation.starts()) == [(4, 40), (5, 50)]


def test_forks_draw_their_own_durations_and_do_not_disturb_each_other() -> None:
    simulation = Simulation(queue_of(3))
    slow = simulation.fork(duration=lambda task: 100 * (task.number + 1))
    fast = simulation.fork()
    interleaved = [next(fork.starts(most=1)) for _ in range(3) for fork in (slow, fast)]
    assert interleaved == [(0, 0), (0, 0), (1, 100), (1, 10), (2, 300), (2, 20)]
    assert list(simulation.starts()) == [(0, 0), (1, 10), (2, 20)]


def test_a_simulation_that_was_run_is_not_forked() -> None:
    simulation = Simulation(queue_of(2))
    assert next(simulation.starts()) == (0, 0)
    with pytest.raises(ValueError, match="fork it first"):
        simulation.fork()


def test_a_run_of_the_snapshot_holds_its_units_as_long_as_is_said() -> None:
    snapshot = queue_of(1, capacity=2)
    running = [Running(left=70, needs=(("gpu", 1),), worker="w", number=9)]
    snapshot = Snapshot(
        now=5, workers=snapshot.workers, limits=snapshot.limits, waiting=snapshot.waiting, running=running
    )
    ended: list[tuple[int, int]] = []
    simulation = Simulation(snapshot, ended=lambda number, at: ended.append((number, at)))
    later = simulation.fork(left=lambda running: 2 * running.left)
    assert list(later.starts()) == [(0, 145)]
    assert list(simulation.starts()) == [(0, 75)]
    assert ended == [(9, 75), (0, 85)]


def test_work_that_follows_is_queued_when_the_work_before_has_ended() -> None:
    def follow(number: int, at: int) -> None:
        if number == 0:
            simulation.submit(Task(2, KIND, account="ann", arrival=at, duration=10))

    simulation = Simulation(queue_of(2, account="bob"), ended=follow)
    # bob's second task has a tag of 1, and the step enters at the tag of the first, 0
    assert list(simulation.starts()) == [(0, 0), (2, 10), (1, 20)]


def test_a_step_enters_at_the_position_that_its_job_has_reserved() -> None:
    def follow(number: int, at: int) -> None:
        if number == 0:
            reserved = {Place.MEDIUM: (1, 0)}
            simulation.submit(Task(3, KIND, account="ann", arrival=at, duration=10, reserved=reserved))

    simulation = Simulation(queue_of(3), ended=follow)
    assert numbers(simulation) == [0, 3, 1, 2]  # the tag of task 1, and an earlier number


def test_finish_tags_are_kept_while_a_job_is_open() -> None:
    first = Waiting(Task(0, KIND, account="eve", duration=1), Place.MEDIUM, 0, 1)
    later = [Task(1, KIND, account="ann", arrival=1), Task(2, KIND, account="bob", arrival=1)]
    for jobs_open, expected in ((True, [0, 2, 1]), (False, [0, 1, 2])):
        snapshot = Snapshot(
            workers=[Worker("w")],
            limits={"gpu": Slots(1)},
            waiting=[first],
            ledgers={Place.MEDIUM: Ledger(v=0, fin={"ann": 500})},
            jobs_open=jobs_open,
        )
        # the place is empty when eve's task has started: if no job is open, all accounts are equal again
        assert numbers(Simulation(snapshot, arrivals=later)) == expected


def test_nothing_of_a_paused_type_starts() -> None:
    kinds = [Kind("paused"), Kind("other")]
    snapshot = Snapshot(
        workers=[Worker("w")],
        paused_types=["paused"],
        waiting=[
            Waiting(Task(number, kind, base=2, duration=30), Place.LOW, 0, number)
            for number, kind in enumerate(kinds)
        ],
    )
    assert list(Simulation(snapshot).starts()) == [(1, 0)]
