"""Which task is next: shares, ageing and the promotion budget, on schedules that show their bounds."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.model.priority import Priority
from fairlead.rules.fairness import stride_of
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Place, Policy, Worker

quick = settings(max_examples=100, deadline=None)
FOREVER = 10**9


def twin_with_one_worker(policy: Policy, capacity: int = 1) -> Twin:
    twin = Twin(policy)
    twin.register(Worker("w", capacity=capacity), 0)
    return twin


def start(twin: Twin, now: int) -> str:
    """Start the next one, and get it out of the way."""
    twin.heartbeat("w", now)
    (task_id,) = twin.claim("w", 1, FOREVER, now)
    twin.complete(task_id, twin.tasks[task_id].fence, now)
    return task_id


@quick
@given(
    budget=st.integers(1, 6),
    ahead=st.integers(0, 4),
    behind=st.integers(0, 4),
    warm_up=st.integers(0, 8),
    mediums=st.booleans(),
)
def test_a_promoted_task_waits_for_a_bounded_number_of_starts(
    budget: int, ahead: int, behind: int, warm_up: int, mediums: bool
) -> None:
    twin = twin_with_one_worker(Policy(budget=budget, medium_to_high=100, low_to_medium=50, low_to_high=100))
    for number in range(100):
        twin.submit(NewTask(f"native{number}", "k", Priority.HIGH), 0)
    for _ in range(warm_up):
        start(twin, 0)
    old = Priority.MEDIUM if mediums else Priority.LOW
    for number in range(ahead):
        twin.submit(NewTask(f"ahead{number}", "k", old), number)
    twin.submit(NewTask("it", "k", old), ahead)
    for number in range(behind):
        twin.submit(NewTask(f"behind{number}", "k", old), ahead + 1 + number)
    now = 100 + ahead
    twin.promote(now)
    assert twin.tasks["it"].place is Place.HIGH_BY_AGE
    starts = 0
    while start(twin, now) != "it":
        starts += 1
        assert starts <= budget * (ahead + 1) + ahead


@settings(max_examples=20, deadline=None)
@given(
    slots=st.integers(1, 4),
    durations=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    weights=st.tuples(st.sampled_from([0.5, 1.0, 2.0, 5.0]), st.sampled_from([1.0, 3.0])),
    head_start=st.integers(0, 5),
)
def test_the_starts_of_two_backlogged_accounts_differ_by_a_bounded_number(
    slots: int, durations: tuple[int, int], weights: tuple[float, float], head_start: int
) -> None:
    """However long their tasks take: all were submitted before any of them ended."""
    twin = twin_with_one_worker(Policy(medium_to_high=0, worker_ttl=FOREVER), capacity=slots)
    duration, weight = dict(zip("fg", durations, strict=True)), dict(zip("fg", weights, strict=True))
    for number in range(160):
        account = "f" if number < head_start else "fg"[number % 2]
        twin.submit(NewTask(f"{account}{number}", "k", fair=account, weight=weight[account]), 0)
    served, gaps, now = {"f": 0.0, "g": 0.0}, [0.0], 0
    while len(gaps) < 80:
        for task_id in twin.claim("w", slots, FOREVER, now):
            served[task_id[0]] += 1 / weight[task_id[0]]
            gaps.append(served["f"] - served["g"])
        ends = {task.id: task.started + duration[task.id[0]] for task in twin.running.values()}
        now = min(ends.values())
        for task_id in [task_id for task_id, end in ends.items() if end == now]:
            twin.complete(task_id, twin.tasks[task_id].fence, now)
    assert max(gaps) - min(gaps) <= 2 * (1 / weight["f"] + 1 / weight["g"])


@quick
@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.sampled_from([None, *Priority])),
        min_size=1,
        max_size=40,
    ),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 6)),
)
def test_without_budget_and_with_one_fair_key_the_best_of_three_heads_goes_next(
    acts: list[tuple[int, Priority | None]], minutes: tuple[int, int, int]
) -> None:
    """One line per base priority in the order of arrival; only their heads are compared."""
    low_to_medium, medium_to_high, low_to_high = (1000 * minute for minute in minutes)
    if low_to_high:
        low_to_high = max(low_to_high, low_to_medium)
    policy = Policy(0, low_to_medium, low_to_high, medium_to_high, worker_ttl=FOREVER)
    twin = twin_with_one_worker(policy)
    lines: dict[Priority, list[int]] = {priority: [] for priority in Priority}

    def position(base: Priority, arrival: int, now: int) -> tuple[int, int]:
        """Its effective priority, and since when it has it."""
        steps = {
            Priority.HIGH: [],
            Priority.MEDIUM: [(0, medium_to_high)],
            Priority.LOW: [(0, low_to_high if low_to_medium else 0), (1, low_to_medium)],
        }[base]
        reached = ((to, arrival + after) for to, after in steps if after and arrival + after <= now)
        return min(reached, default=(int(base), arrival))

    now = 0
    for number, (pause, base) in enumerate(acts):
        # No two arrivals are equal modulo 1000, so no two promotions happen at one instant.
        later = (now + pause) // 1000 * 1000 + number
        later += 1000 * (later < now)
        while (instant := twin.next_instant(now)) is not None and instant <= later:
            now = instant
            twin.promote(now)
        now = later
        if base is not None:
            twin.submit(NewTask(str(now), "k", base), now)
            lines[base].append(now)
            continue
        heads = [(position(base, line[0], now), line[0], base) for base, line in lines.items() if line]
        if heads:
            _, arrival, base = min(heads)
            assert start(twin, now) == str(arrival)
            lines[base].pop(0)


def test_a_new_tenant_is_served_at_once_and_has_no_credit_for_idling() -> None:
    twin = twin_with_one_worker(Policy())
    for number in range(5):
        twin.submit(NewTask(f"old{number}", "k", fair="old"), 0)
    for _ in range(2):
        start(twin, 0)
    for number in range(3):
        twin.submit(NewTask(f"new{number}", "k", fair="new"), 0)
    assert [start(twin, 0) for _ in range(6)] == ["new0", "old2", "new1", "old3", "new2", "old4"]


def serve(twin: Twin, account: str, ms: int) -> None:
    """A separate run, before any other task is submitted."""
    twin.submit(NewTask(f"{account}-{ms}", "k", fair=account), 0)
    (task_id,) = twin.claim("w", 1, FOREVER, 0)
    twin.complete(task_id, twin.tasks[task_id].fence, ms)


def stride(twin: Twin, account: str, weight: float) -> int:
    return stride_of(weight, twin.shares.factor(account))


def test_an_account_whose_starts_cost_more_is_given_fewer_of_them() -> None:
    twin = twin_with_one_worker(Policy(worker_ttl=FOREVER))
    serve(twin, "slow", 2_000)
    serve(twin, "quick", 500)
    mean = twin.shares.mean
    assert mean == 2_000_000 - 1_500_000 // 64 - 1  # towards the last run, by a sixty-fourth, rounded down
    assert stride(twin, "slow", 1.0) == 100 * (2_000_000_000 // mean)
    assert stride(twin, "quick", 2.0) == 50 * (500_000_000 // mean)
    assert stride(twin, "unknown", 1.0) == 100_000
    for _ in range(400):
        twin.shares.learn("slow", 10**7)
        twin.shares.learn("quick", 1)
    assert stride(twin, "quick", 1.0) == 100 * 125
    assert stride(twin, "quick", 1_000_000.0) == 1


def test_learnt_durations_change_the_spacing_of_later_submits_only() -> None:
    twin = twin_with_one_worker(Policy(worker_ttl=FOREVER))
    for number in range(3):
        twin.submit(NewTask(f"a{number}", "k", fair="a"), 0)
        twin.submit(NewTask(f"b{number}", "k", fair="b"), 0)
    before = [twin.tasks[f"a{number}"].tag for number in range(3)]
    for account, ms in (("a", 9_000), ("b", 1)):
        for _ in range(50):
            twin.shares.learn(account, ms)
    assert [twin.tasks[f"a{number}"].tag for number in range(3)] == before == [0, 100_000, 200_000]
    assert "".join(start(twin, 0)[0] for _ in range(6)) == "ababab"


def test_a_job_is_charged_for_all_its_steps_when_it_is_submitted() -> None:
    twin = twin_with_one_worker(Policy())
    twin.begin_job("j", "a", 3)
    twin.submit(NewTask("step0", "k", fair="a", job="j", step=0), 0)
    assert [twin.jobs["j"].reserved[Place.MEDIUM].position(step) for step in range(3)] == [
        (0, 1),
        (100_000, 2),
        (200_000, 3),
    ]
    twin.submit(NewTask("later", "k", fair="a"), 0)
    for number in range(4):
        twin.submit(NewTask(f"b{number}", "k", fair="b"), 0)
    assert start(twin, 0) == "step0"
    twin.submit(NewTask("step1", "k", fair="a", job="j", step=1), 0)
    assert [start(twin, 0) for _ in range(2)] == ["b0", "step1"]
    twin.submit(NewTask("step2", "k", fair="a", job="j", step=2), 0)
    assert [start(twin, 0) for _ in range(5)] == ["b1", "step2", "b2", "later", "b3"]


def test_a_promoted_job_is_charged_for_all_steps_that_follow_when_its_first_is_promoted() -> None:
    twin = twin_with_one_worker(Policy(medium_to_high=10, worker_ttl=FOREVER))
    twin.begin_job("j", "a", 4)
    twin.submit(NewTask("step0", "k", fair="a", job="j", step=0), 0)
    assert start(twin, 0) == "step0"
    twin.submit(NewTask("step1", "k", fair="a", job="j", step=1, arrival=0), 0)
    twin.submit(NewTask("later", "k", fair="a"), 0)
    for number in range(4):
        twin.submit(NewTask(f"b{number}", "k", fair="b"), 0)
    twin.promote(10)
    for _ in range(50):
        twin.shares.learn("a", 1)  # a duration that is learnt later changes nothing for a job
        twin.shares.learn("b", 9_000)
    order = []
    for step in (2, 3):
        order += [start(twin, 10), start(twin, 10)]
        twin.submit(NewTask(f"step{step}", "k", fair="a", job="j", step=step, arrival=0), 10)
    order += [start(twin, 10) for _ in range(4)]
    assert order == ["step1", "b0", "step2", "b1", "step3", "b2", "later", "b3"]
    assert {twin.tasks[name].place for name in order} == {Place.HIGH_BY_AGE}


def test_the_end_of_a_busy_period_forgives_nothing_while_a_job_has_steps_to_come() -> None:
    twin = twin_with_one_worker(Policy())
    twin.begin_job("j", "a", 9)
    twin.submit(NewTask("step0", "k", fair="a", job="j", step=0), 0)
    start(twin, 0)
    for number in range(3):
        twin.submit(NewTask(f"b{number}", "k", fair="b"), 0)
    twin.submit(NewTask("step1", "k", fair="a", job="j", step=1), 0)
    assert [start(twin, 0) for _ in range(2)] == ["b0", "step1"]
    twin.jobs.clear()  # it has ended
    assert [start(twin, 0) for _ in range(2)] == ["b1", "b2"]
    assert twin.shares.ledger(Place.MEDIUM).fin == {}


def test_without_budget_promoted_and_native_tasks_share_one_line() -> None:
    twin = twin_with_one_worker(Policy(budget=0, medium_to_high=10))
    twin.submit(NewTask("native0", "k", Priority.HIGH), 0)
    twin.submit(NewTask("promoted", "k", Priority.MEDIUM), 0)
    twin.promote(10)
    twin.submit(NewTask("native1", "k", Priority.HIGH), 10)
    assert [twin.tasks[name].tag for name in ("native0", "promoted", "native1")] == [0, 100_000, 200_000]
    assert [start(twin, 10) for _ in range(3)] == ["native0", "promoted", "native1"]


def test_the_heavier_the_weight_the_larger_the_share() -> None:
    twin = twin_with_one_worker(Policy())
    for number in range(9):
        twin.submit(NewTask(f"f{number}", "k", fair="f", weight=2.0), 0)
        twin.submit(NewTask(f"g{number}", "k", fair="g", weight=1.0), 0)
    assert "".join(start(twin, 0)[0] for _ in range(9)).count("f") == 6


def test_a_task_may_move_up_twice_at_once_and_keeps_its_arrival() -> None:
    twin = Twin(Policy())
    twin.submit(NewTask("a", "k", Priority.LOW), 7)
    assert twin.next_instant(7) == 600_007
    twin.promote(600_006)
    assert twin.tasks["a"].place is Place.LOW
    twin.promote(2_000_000)
    assert (twin.tasks["a"].place, twin.tasks["a"].arrival, twin.tasks["a"].seq) == (Place.HIGH_BY_AGE, 7, 3)
    assert twin.next_instant(2_000_000) is None


def test_time_moves_half_of_what_an_act_may_do_of_each_kind() -> None:
    twin = Twin(Policy(timed_work=4))
    for number in range(3):
        twin.submit(NewTask(f"low{number}", "k", Priority.LOW), 0)
        twin.submit(NewTask(f"medium{number}", "k", Priority.MEDIUM), 0)
    twin.promote(1_200_000)
    places = Counter(task.place for task in twin.tasks.values())
    assert places == {Place.LOW: 1, Place.MEDIUM: 2, Place.MEDIUM_BY_AGE: 2, Place.HIGH_BY_AGE: 1}


def test_the_limits_of_a_task_count_like_tasks() -> None:
    twin = Twin(Policy(timed_work=8))
    for name in "abc":
        twin.set_limit(name, slots=9, now=0)
    for number in range(3):
        twin.submit(NewTask(f"{number}", "k", run_at=10, limits={"a": 1, "b": 1, "c": 1}), 0)
    moved = []
    for _ in range(3):
        twin.promote(10)
        moved.append(len(twin.queued))
    assert moved == [1, 2, 3]


@pytest.mark.long
def test_an_hour_of_rolling_load_is_shared_by_seconds_of_service() -> None:
    """One user's tasks take a second, the other's a tenth: each keeps five waiting for one slot."""
    twin = twin_with_one_worker(Policy(worker_ttl=FOREVER, medium_to_high=0))
    duration, served = {"a": 1_000, "b": 100}, {"a": 0, "b": 0}
    for number in range(5):
        for user in "ab":
            twin.submit(NewTask(f"{user}{number}", "k", fair=user), 0)
    now, number = 0, 5
    while now < 3_600_000:
        (task_id,) = twin.claim("w", 1, FOREVER, now)
        user = task_id[0]
        twin.submit(NewTask(f"{user}{number}", "k", fair=user), now)
        number += 1
        now += duration[user]
        served[user] += duration[user]
        twin.complete(task_id, twin.tasks[task_id].fence, now)
        del twin.tasks[task_id]
    assert 0.8 <= served["a"] / served["b"] <= 1.2
