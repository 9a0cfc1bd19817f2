"""One act at a time: fences, repeated and late reports, retries, crashes, patience, cancelling."""

import copy
from collections.abc import Callable

import pytest

from fairlead.errors import (
    AlreadyFinished,
    Fenced,
    InvalidInput,
    NotReplayable,
    UnknownTask,
    UnknownWorker,
)
from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Place, Policy, Worker

LEASE = 100


@pytest.fixture
def twin() -> Twin:
    twin = Twin(Policy(grace=10, retry_base=1000))
    twin.set_limit("l", slots=1, now=0)
    twin.register(Worker("w", capacity=3), 0)
    return twin


def run(twin: Twin, now: int = 0, **options: object) -> int:
    """Submit task `a` and start it; its fence."""
    twin.submit(NewTask(**{"id": "a", "type": "k", "limits": {"l": 1}, **options}), now)  # type: ignore[arg-type]
    assert twin.claim("w", 1, LEASE, now) == ["a"]
    return twin.tasks["a"].fence


def changes_nothing(twin: Twin, act: Callable[[], object]) -> bool:
    before = copy.deepcopy(twin.tasks), copy.deepcopy(twin.ledger.taken), twin.last_fence, twin.last_seq
    act()
    return before == (twin.tasks, twin.ledger.taken, twin.last_fence, twin.last_seq)


def refused(act: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        with pytest.raises(Fenced):
            act()

    return call


# Workers


def test_only_a_live_registered_worker_may_claim(twin: Twin) -> None:
    twin.submit(NewTask("a", "k"), 0)
    with pytest.raises(UnknownWorker):
        twin.claim("stranger", 1, LEASE, 0)
    with pytest.raises(UnknownWorker):
        twin.drain("stranger", 0)
    with pytest.raises(UnknownWorker):
        twin.claim("w", 1, LEASE, 30_001)
    with pytest.raises(UnknownWorker):
        twin.heartbeat("w", 30_001)
    twin.heartbeat("w", 30_000)
    assert twin.claim("w", 1, LEASE, 60_000) == ["a"]
    twin.heartbeat("w", 90_000)


def test_a_draining_worker_gets_nothing(twin: Twin) -> None:
    twin.submit(NewTask("a", "k"), 0)
    twin.drain("w", 0)
    assert twin.claim("w", 1, LEASE, 0) == []


def test_a_worker_gets_what_it_can_serve_and_has_slots_for(twin: Twin) -> None:
    twin.register(Worker("v", frozenset({"gpu"}), frozenset({"k"}), capacity=2, reserve=1), 0)
    twin.submit(NewTask("other type", "x", Priority.HIGH), 0)
    twin.submit(NewTask("other capability", "k", Priority.HIGH, capabilities=frozenset({"tpu"})), 0)
    for name in ("m", "n"):
        twin.submit(NewTask(name, "k", Priority.MEDIUM, capabilities=frozenset({"gpu"})), 0)
    assert twin.claim("v", 5, LEASE, 0) == ["m"]
    twin.submit(NewTask("h", "k", Priority.HIGH), 0)
    twin.submit(NewTask("i", "k", Priority.HIGH), 0)
    assert twin.claim("v", 5, LEASE, 0) == ["h"]


def test_the_reserve_stays_closed_to_tasks_promoted_to_high(twin: Twin) -> None:
    twin.register(Worker("v", capacity=1, reserve=1), 1_200_000)
    twin.submit(NewTask("a", "k", Priority.MEDIUM), 0)
    assert twin.claim("v", 1, LEASE, 1_200_000) == []
    assert twin.tasks["a"].place is Place.HIGH_BY_AGE


# Reports


def test_only_the_newest_fence_may_report(twin: Twin) -> None:
    fence = run(twin)
    twin.expire(LEASE + 10)
    assert twin.claim("w", 1, LEASE, 200) == ["a"]
    assert changes_nothing(twin, refused(lambda: twin.complete("a", fence, 210)))
    assert changes_nothing(twin, refused(lambda: twin.fail("a", fence, "bad", True, 0, 0, 210)))
    assert changes_nothing(twin, refused(lambda: twin.release("a", fence, 210)))
    assert changes_nothing(twin, refused(lambda: twin.renew("a", fence, LEASE, 210)))
    twin.complete("a", twin.tasks["a"].fence, 210)


def test_a_result_from_an_older_fence_is_refused_although_the_task_is_completed(twin: Twin) -> None:
    fence = run(twin)
    twin.expire(LEASE + 10)
    twin.claim("w", 1, LEASE, 200)
    twin.complete("a", twin.tasks["a"].fence, 210)
    assert changes_nothing(twin, refused(lambda: twin.complete("a", fence, 220)))


def test_a_report_under_another_name_is_refused_and_one_without_a_name_is_not(twin: Twin) -> None:
    fence = run(twin)
    for report in (
        lambda: twin.complete("a", fence, 5, worker="v"),
        lambda: twin.fail("a", fence, "bad", True, 0, 0, 5, worker="v"),
        lambda: twin.release("a", fence, 5, worker="v"),
        lambda: twin.extend("a", fence, 9, LEASE, 5, worker="v"),
    ):
        assert changes_nothing(twin, refused(report))
    twin.extend("a", fence, 9, LEASE, 5, worker="w")
    twin.complete("a", fence, 5)


def test_a_fence_is_no_less_than_the_time_and_larger_than_all_before(twin: Twin) -> None:
    assert run(twin, now=7) == 7_000
    twin.cancel("a", 7)
    assert twin.tasks["a"].fence == 7_001
    twin.set_limit("m", slots=9, now=7)
    assert twin.acquire("m", "l", 1, LEASE, 8) == 8_000
    assert twin.acquire("m", "m", 1, LEASE, 3) == 8_001, "the clock was set back"


def test_reports_on_unknown_tasks_are_refused(twin: Twin) -> None:
    with pytest.raises(UnknownTask):
        twin.complete("none", 1, 0)
    with pytest.raises(UnknownTask):
        twin.renew("none", 1, LEASE, 0)
    with pytest.raises(UnknownTask):
        twin.cancel("none", 0)


def test_a_repeated_report_changes_nothing(twin: Twin) -> None:
    fence = run(twin)
    assert twin.release("a", fence, 5) is State.QUEUED
    assert changes_nothing(twin, lambda: twin.release("a", fence, 6))
    assert twin.claim("w", 1, LEASE, 6) == ["a"]
    second = twin.tasks["a"].fence
    assert twin.fail("a", second, "bad", True, 0, 0, 7) is State.DELAYED
    assert changes_nothing(twin, lambda: twin.fail("a", second, "bad", True, 0, 0, 8))
    twin.promote(507)
    assert twin.claim("w", 1, LEASE, 507) == ["a"]
    third = twin.tasks["a"].fence
    twin.complete("a", third, 508)
    assert changes_nothing(twin, lambda: twin.complete("a", third, 509, [NewTask("late", "k")]))
    assert twin.release("a", third, 509) is State.COMPLETED
    assert twin.tasks["a"].error_code is None


def test_the_same_submit_again_changes_nothing(twin: Twin) -> None:
    run(twin)
    assert changes_nothing(twin, lambda: twin.submit(NewTask("a", "k"), 5))


def test_follow_ups_are_submitted_with_the_result_or_nothing_happens(twin: Twin) -> None:
    fence = run(twin)
    with pytest.raises(InvalidInput):
        twin.complete("a", fence, 5, [NewTask("b", "k"), NewTask("c", "k", limits={"none": 1})])
    assert twin.tasks["a"].state is State.EXECUTING and list(twin.tasks) == ["a"]
    twin.complete("a", fence, 5, [NewTask("b", "k")])
    assert twin.tasks["b"].state is State.QUEUED


def test_a_lease_is_renewed_up_to_the_deadline_and_no_further(twin: Twin) -> None:
    fence = run(twin, timeout=250)
    assert twin.renew("a", fence, LEASE, 90) == 190
    assert twin.renew("a", fence, LEASE, 190) == 290
    assert twin.renew("a", fence, LEASE, 280) == 350


def test_a_released_task_keeps_its_position(twin: Twin) -> None:
    fence = run(twin, max_wait=50)
    twin.submit(NewTask("b", "k", limits={"l": 1}), 1)
    place = twin.tasks["a"].tag, twin.tasks["a"].seq, twin.tasks["a"].arrival
    twin.release("a", fence, 20)
    assert (twin.tasks["a"].tag, twin.tasks["a"].seq, twin.tasks["a"].arrival) == place
    assert twin.claim("w", 1, LEASE, 60) == ["a"], "it was started once: its wait has ended"


# Failures


@pytest.mark.parametrize(
    ("code", "retriable", "jitter", "retry_after", "state", "delay"),
    [
        ("bad", True, 0, 0, State.DELAYED, 500),
        ("bad", True, 333, 0, State.DELAYED, 666),
        ("bad", True, 1000, 0, State.DELAYED, 1000),
        ("bad", True, 0, 700, State.DELAYED, 700),
        ("bad", False, 0, 0, State.FAILED, None),
    ],
)
def test_the_first_failure(
    twin: Twin, code: str, retriable: bool, jitter: int, retry_after: int, state: State, delay: int | None
) -> None:
    fence = run(twin)
    assert twin.fail("a", fence, code, retriable, jitter, retry_after, 40) is state
    assert twin.tasks["a"].run_at == (None if delay is None else 40 + delay)
    assert twin.tasks["a"].error_code == code


def test_retries_double_their_delay_keep_the_base_and_end_in_the_dead_letters() -> None:
    twin = Twin(Policy(retry_base=1000, retry_max=3000, low_to_medium=1))
    twin.register(Worker("w"), 0)
    twin.submit(NewTask("a", "k", Priority.LOW, max_retries=3), 0)
    now, delays = 10, []
    for attempt in range(3):
        assert twin.claim("w", 1, LEASE, now) == ["a"]
        assert twin.tasks["a"].place is (Place.LOW if attempt else Place.MEDIUM_BY_AGE)
        twin.fail("a", twin.tasks["a"].fence, "bad", True, 1000, 0, now)
        run_at = twin.tasks["a"].run_at
        assert run_at is not None and twin.next_instant(now) == run_at
        delays.append(run_at - now)
        now = run_at
    assert delays == [1000, 2000, 3000]
    assert twin.claim("w", 1, LEASE, now) == ["a"]
    assert twin.tasks["a"].arrival == now
    assert twin.fail("a", twin.tasks["a"].fence, "bad", True, 0, 0, now) is State.DEAD_LETTER


def test_without_back_off_a_retry_is_queued_at_once() -> None:
    twin = Twin(Policy(retry_base=0))
    twin.register(Worker("w"), 0)
    twin.submit(NewTask("a", "k", max_wait=5), 0)
    twin.claim("w", 1, LEASE, 1)
    assert twin.fail("a", twin.tasks["a"].fence, "bad", True, 1000, 0, 2) is State.QUEUED
    assert (twin.tasks["a"].arrival, twin.tasks["a"].wait_until) == (2, None)


def test_a_timeout_gets_half_as_much_time_again(twin: Twin) -> None:
    run(twin, timeout=LEASE + 10)
    twin.expire(LEASE + 9)
    assert twin.tasks["a"].state is State.EXECUTING
    twin.expire(LEASE + 10)
    task = twin.tasks["a"]
    assert (task.state, task.retries, task.crashes, task.timeout) == (State.DELAYED, 1, 0, 165)
    assert task.run_at == LEASE + 10 + 1000 and twin.ledger.used("l") == 0
    assert twin.claim("w", 1, LEASE, task.run_at) == ["a"]
    twin.fail("a", task.fence, "bad", False, 0, 0, task.started)
    twin.replay("a", task.started)
    assert (task.timeout, task.retries, task.error_code) == (LEASE + 10, 0, None)


def test_a_timeout_grows_to_three_times_what_it_was(twin: Twin) -> None:
    run(twin, timeout=1_000, max_retries=4)
    task, timeouts = twin.tasks["a"], []
    for _ in range(4):
        twin.fail("a", task.fence, "timeout", True, 0, 0, task.started)
        timeouts.append(task.timeout)
        assert task.run_at is not None
        twin.claim("w", 1, LEASE, task.run_at)
    assert timeouts == [1_500, 2_250, 3_000, 3_000]


def test_a_longer_lease_of_the_task_counts(twin: Twin) -> None:
    fence = run(twin, timeout=1_000, lease=2 * LEASE)
    assert twin.tasks["a"].lease_until == 2 * LEASE
    assert twin.renew("a", fence, LEASE, 10) == 10 + 2 * LEASE
    assert twin.renew("a", fence, 3 * LEASE, 20) == 20 + 3 * LEASE


def test_three_lost_workers_are_too_many_and_a_replay_starts_from_the_beginning(twin: Twin) -> None:
    run(twin, max_wait=5)
    for now in (110, 220, 330):
        twin.lose_worker("w", now)
        twin.register(Worker("w"), now)
        twin.claim("w", 1, LEASE, now)
    task = twin.tasks["a"]
    assert (task.state, task.crashes, task.error_code) == (State.DEAD_LETTER, 3, "worker_lost")
    twin.replay("a", 400)
    assert (task.state, task.crashes, task.arrival) == (State.QUEUED, 0, 400)
    assert twin.claim("w", 1, LEASE, 500) == ["a"]
    with pytest.raises(NotReplayable):
        twin.replay("a", 500)


def test_a_reported_crash_is_charged_and_counted_and_uses_up_no_retry(twin: Twin) -> None:
    fence = run(twin, max_retries=0, timeout=900)
    assert twin.fail("a", fence, "oom", False, 0, 5_000, 40, crashed=True) is State.QUEUED
    task = twin.tasks["a"]
    assert (task.crashes, task.retries, task.error_code, task.arrival) == (1, 0, "oom", 0)
    assert changes_nothing(twin, lambda: twin.fail("a", fence, "oom", False, 0, 0, 41, crashed=True))
    for now in (50, 60):
        assert twin.claim("w", 1, LEASE, now) == ["a"]
        twin.fail("a", task.fence, "oom", True, 0, 0, now, crashed=True)
    assert task.state is State.DEAD_LETTER


def test_a_worker_known_to_be_dead_loses_all_at_once_high_first(twin: Twin) -> None:
    for name, base in (("a", Priority.LOW), ("b", Priority.HIGH), ("c", Priority.HIGH)):
        twin.submit(NewTask(name, "k", base), 0)
    assert len(twin.claim("w", 3, LEASE, 0)) == 3
    twin.cancel("c", 1)
    assert twin.lose_worker("w", 2) == 3
    assert not twin.running and "w" not in twin.workers
    a, b, c = (twin.tasks[name] for name in "abc")
    assert (a.state, b.state, c.state) == (State.QUEUED, State.QUEUED, State.CANCELLED)
    assert (a.seq, b.seq) == (1, 2), "they keep their places"
    assert [(task.crashes, task.losses) for task in (a, b, c)] == [(0, 1), (0, 1), (0, 0)]


TTL = 30_000  # as long as a worker may be silent, and a lease


@pytest.mark.parametrize(
    ("what", "others", "crashes"),
    [
        ("nobody else was there", {}, 0),
        ("another worker lives", {"v": (0, TTL)}, 1),
        ("another worker fell silent soon after", {"v": (0, 12_000)}, 0),
        ("another worker came later", {"v": (10_000, TTL)}, 0),
        ("its own worker lives", {"w": (0, TTL), "v": (0, TTL)}, 0),
    ],
)
def test_a_task_that_ran_alone_is_charged_if_another_worker_outlived_its_own(
    twin: Twin, what: str, others: dict[str, tuple[int, int]], crashes: int
) -> None:
    """`others`: when each worker registered, and when it last reported."""
    twin.submit(NewTask("a", "k"), 0)
    twin.claim("w", 1, TTL, 0)
    for worker, (registered, seen) in others.items():
        twin.workers[worker] = Worker(worker, registered=registered, seen=seen)
    twin.expire(TTL + 10)
    assert (twin.tasks["a"].crashes, twin.tasks["a"].losses) == (crashes, 1 - crashes), what


def test_twelve_losses_are_too_many(twin: Twin) -> None:
    for name in "ab":
        twin.submit(NewTask(name, "k"), 0)
    for now in range(12):
        assert twin.claim("w", 2, LEASE, now) == ["a", "b"]
        twin.lose_worker("w", now)
        twin.register(Worker("w", capacity=3), now)
    assert [(t.state, t.losses) for t in twin.tasks.values()] == [(State.DEAD_LETTER, 12)] * 2
    twin.replay("a", 12)
    assert twin.tasks["a"].losses == 0


# Waiting


def test_a_delayed_task_enters_when_its_time_has_come(twin: Twin) -> None:
    task = twin.submit(NewTask("a", "k", run_at=50, max_wait=10), 0)
    assert (task.state, task.wait_until) == (State.DELAYED, 60)
    assert twin.claim("w", 1, LEASE, 49) == []
    twin.promote(55)
    assert (task.state, task.arrival) == (State.QUEUED, 50)


def test_due_tasks_are_queued_in_the_order_of_their_instants_then_of_submits(twin: Twin) -> None:
    for name, run_at in (("c", 20), ("b", 20), ("a", 10)):
        twin.submit(NewTask(name, "k", run_at=run_at), 0)
    assert twin.claim("w", 3, LEASE, 50) == ["a", "c", "b"]


def test_the_best_priority_of_the_due_tasks_is_queued_first() -> None:
    twin = Twin(Policy(timed_work=4))
    for name, base in (("a", 2), ("b", 2), ("c", 0), ("d", 1)):
        twin.submit(NewTask(name, "k", base, run_at=10), 0)
    twin.promote(10)
    assert list(twin.queued) == ["c", "d"]


def test_nothing_worse_starts_while_something_better_is_due_and_not_queued() -> None:
    twin = Twin(Policy(timed_work=2))
    twin.register(Worker("w", capacity=9), 0)
    twin.submit(NewTask("low", "k", 2), 0)
    for name in ("a", "b", "c"):
        twin.submit(NewTask(name, "k", 1, run_at=10), 0)
    assert twin.claim("w", 9, LEASE, 10) == ["a"]
    assert twin.claim("w", 9, LEASE, 10) == ["b"]
    assert twin.claim("w", 9, LEASE, 10) == ["c", "low"]


def test_a_run_at_that_has_passed_means_now(twin: Twin) -> None:
    assert twin.submit(NewTask("a", "k", run_at=5), 9).arrival == 9


def test_a_task_that_did_not_start_in_time_fails(twin: Twin) -> None:
    run(twin)
    task = twin.submit(NewTask("b", "k", limits={"l": 1}, max_wait=50), 0)
    assert twin.next_instant(0) == 50
    assert twin.claim("w", 1, LEASE, 49) == []
    assert twin.claim("w", 1, LEASE, 50) == []
    assert (task.state, task.error_code) == (State.FAILED, "RESOURCE_EXHAUSTED")


# Cancelling


def test_waiting_tasks_are_cancelled_at_once_and_finished_ones_not_at_all(twin: Twin) -> None:
    twin.submit(NewTask("later", "k", run_at=50), 0)
    twin.submit(NewTask("queued", "k"), 0)
    assert twin.cancel("later", 1) is State.CANCELLED
    assert twin.cancel("queued", 1) is State.CANCELLED
    assert twin.cancel("queued", 1) is State.CANCELLED
    twin.complete("a", run(twin), 1)
    with pytest.raises(AlreadyFinished):
        twin.cancel("a", 1)
    assert twin.last_fence == 1


@pytest.mark.parametrize("how", ["complete", "fail", "release", "lease ends"])
def test_a_cancelled_task_keeps_its_units_until_its_worker_has_stopped(twin: Twin, how: str) -> None:
    fence = run(twin)
    assert twin.cancel("a", 1) is State.CANCELLED
    assert twin.tasks["a"].fence > fence
    assert changes_nothing(twin, refused(lambda: twin.renew("a", fence, LEASE, 2)))
    assert changes_nothing(twin, lambda: twin.cancel("a", 2))
    assert twin.ledger.used("l") == 1 and len(twin.running) == 1
    if how == "lease ends":
        twin.expire(LEASE + 10)
    else:
        reports: dict[str, Callable[[], object]] = {
            "complete": lambda: twin.complete("a", fence, 3),
            "fail": lambda: twin.fail("a", fence, "bad", True, 0, 0, 3),
            "release": lambda: twin.release("a", fence, 3),
        }
        refused(reports[how])()
        assert changes_nothing(twin, refused(reports[how]))
    assert twin.ledger.used("l") == 0 and not twin.running
    assert twin.tasks["a"].state is State.CANCELLED
