"""Who goes next: shares, ageing and the promotion budget, on schedules long enough to show their bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.rules import NewTask, Place, Policy, Priority, Twin, Worker

quick = settings(max_examples=100, deadline=None)
FOREVER = 10**9


def twin_with_one_worker(policy: Policy, capacity: int = 1) -> Twin:
    twin = Twin(policy)
    twin.register(Worker("w", capacity=capacity), 0)
    return twin


def start(twin: Twin, now: int) -> str:
    """Start the next one, and get it out of the way as if it had cost just what was expected."""
    twin.heartbeat("w", now)
    (task_id,) = twin.claim("w", 1, FOREVER, now)
    task = twin.tasks[task_id]
    task.started -= task.cost
    twin.complete(task_id, task.fence, now)
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


@quick
@given(
    slots=st.integers(1, 4),
    costs=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    weights=st.tuples(st.sampled_from([0.5, 1.0, 2.0, 5.0]), st.sampled_from([1.0, 3.0])),
    head_start=st.integers(0, 5),
)
def test_two_backlogged_tenants_are_served_alike_within_the_bound(
    slots: int, costs: tuple[int, int], weights: tuple[float, float], head_start: int
) -> None:
    twin = twin_with_one_worker(Policy(medium_to_high=0, worker_ttl=FOREVER), capacity=slots)
    cost, weight = dict(zip("fg", costs, strict=True)), dict(zip("fg", weights, strict=True))
    twin.books.expected.update(cost)
    served = {"f": 0.0, "g": 0.0}
    submitted, now, gaps = 0, 0, [0.0]

    def submit(tenant: str) -> None:
        nonlocal submitted
        submitted += 1
        twin.submit(NewTask(f"{tenant}{submitted}", tenant, fair=tenant, weight=weight[tenant]), now)

    for tenant in "f" * head_start + "fg" * (slots + 1):
        submit(tenant)
    for _ in range(120):
        for task_id in twin.claim("w", slots, FOREVER, now):
            tenant = task_id[0]
            submit(tenant)
            served[tenant] += cost[tenant] / weight[tenant]
            gaps.append(served["f"] - served["g"])
        now = min(task.started + task.cost for task in twin.running.values())
        for task in list(twin.running.values()):
            if task.started + task.cost == now:
                twin.complete(task.id, task.fence, now)
    bound = (slots + 1) * (cost["f"] / weight["f"] + cost["g"] / weight["g"])
    assert max(gaps) - min(gaps) <= bound + 1  # strides are whole numbers


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

    def standing(base: Priority, arrival: int, now: int) -> tuple[int, int]:
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
        heads = [(standing(base, line[0], now), line[0], base) for base, line in lines.items() if line]
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


def test_wrong_estimates_correct_themselves() -> None:
    twin = twin_with_one_worker(Policy(worker_ttl=FOREVER))
    for number in range(4):
        twin.submit(NewTask(f"f{number}", "k", fair="f"), 0)
        twin.submit(NewTask(f"g{number}", "k", fair="g"), 0)
    account = twin.books.account(Place.MEDIUM)
    assert account.fin == {"f": 4_000_000, "g": 4_000_000}
    twin.claim("w", 1, FOREVER, 0)
    twin.complete("f0", 1, 3_500)
    assert account.fin == {"f": 6_500_000, "g": 4_000_000}
    twin.claim("w", 1, FOREVER, 3_500)
    twin.complete("g0", 2, 3_600)
    assert account.fin == {"f": 6_500_000, "g": 3_100_000}
    assert twin.books.expected["k"] == 3_500 + (100 - 3_500) // 8


def test_a_correction_beyond_the_present_is_forgotten_and_one_without_account_starts_from_it() -> None:
    twin = twin_with_one_worker(Policy())
    twin.submit(NewTask("a", "k", fair="f"), 0)
    account = twin.books.account(Place.MEDIUM)
    twin.claim("w", 1, FOREVER, 0)
    assert (account.v, account.fin) == (1_000_000, {})
    twin.fail("a", 1, "bad", False, 0, 0, 1_200)
    assert account.fin == {"f": 1_200_000}
    account.correct("f", -500, 1.0)
    assert account.fin == {}
    account.correct("f", -500, 1.0)
    assert account.fin == {}


def test_without_budget_promoted_and_native_tasks_share_one_line() -> None:
    twin = twin_with_one_worker(Policy(budget=0, medium_to_high=10))
    twin.submit(NewTask("native0", "k", Priority.HIGH), 0)
    twin.submit(NewTask("promoted", "k", Priority.MEDIUM), 0)
    twin.promote(10)
    twin.submit(NewTask("native1", "k", Priority.HIGH), 10)
    assert [twin.tasks[name].tag for name in ("native0", "promoted", "native1")] == [0, 1_000_000, 2_000_000]
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


def test_time_makes_at_most_a_batch_of_moves_of_each_kind() -> None:
    twin = Twin(Policy(batch=2))
    for number in range(3):
        twin.submit(NewTask(f"{number}", "k", Priority.LOW), 0)
    twin.promote(600_000)
    assert [task.place for task in twin.tasks.values()] == ["1p", "1p", "2n"]
