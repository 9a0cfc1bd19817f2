"""Limits and holds: never too much, all or none, and no task that needs two limits is overtaken forever."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import Fenced, InvalidInput, LimitFull, UnknownLimit
from fairlead.model.priority import Priority
from fairlead.rules.limits import Companions, Rate
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Worker

quick = settings(max_examples=60, deadline=None)
FOREVER = 10**9


def twin_with(slots: dict[str, int], policy: Policy | None = None, capacity: int = 10) -> Twin:
    twin = Twin(policy or Policy())
    for name, size in slots.items():
        twin.set_limit(name, slots=size, now=0)
    twin.register(Worker("w", capacity=capacity), 0)
    return twin


def claim(twin: Twin, now: int, want: int = 10) -> list[str]:
    twin.heartbeat("w", now)
    return twin.claim("w", want, FOREVER, now)


# Rates


@quick
@given(
    count=st.integers(1, 20),
    period_ms=st.integers(1, 200),
    burst=st.integers(1, 20),
    pauses=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=40),
)
def test_a_rate_never_gives_more_than_its_burst_and_what_grew_back(
    count: int, period_ms: int, burst: int, pauses: list[tuple[int, int]]
) -> None:
    rate = Rate(count, period_ms, burst)
    now, taken = 0, []
    for pause, units in pauses:
        now += pause
        if rate.room(now) >= units:
            rate.take(units, now)
            taken.append((now, units))
        elif units <= burst:
            again = rate.refilled_at(units, now)
            assert rate.room(again - 1) < units <= rate.room(again)
    for first, (since, _) in enumerate(taken):
        for last in range(first, len(taken)):
            elapsed_us = (taken[last][0] - since) * 1000
            assert sum(units for _, units in taken[first : last + 1]) <= burst + elapsed_us / rate.interval


def test_a_rate_gives_nothing_back_and_refills_by_time_alone() -> None:
    twin = twin_with({})
    twin.set_limit("r", count=2, period_ms=1000, now=0)
    for name in "abc":
        twin.submit(NewTask(name, "k", limits={"r": 1}), 0)
    assert claim(twin, 0) == ["a", "b"]
    twin.complete("a", twin.tasks["a"].fence, 0)
    assert claim(twin, 499) == []
    assert twin.next_instant(499) == 500
    assert claim(twin, 500) == ["c"]


def test_a_rate_that_is_set_again_remembers_the_taken_units() -> None:
    twin = twin_with({})
    twin.set_limit("r", count=1, period_ms=1000, burst=1, now=0)
    twin.acquire("r", "l", 1, 100, 0)
    twin.set_limit("r", count=1, period_ms=2000, burst=1, now=0)
    with pytest.raises(LimitFull):
        twin.acquire("r", "m", 1, 100, 999)
    twin.set_limit("r", slots=2, now=0)
    twin.acquire("r", "m", 1, 100, 999)


def test_a_rate_that_is_changed_owes_the_same_units_at_its_new_pace() -> None:
    twin = twin_with({})
    twin.set_limit("r", count=60, period_ms=3_600_000, now=0)
    twin.acquire("r", "l", 60, 100, 0)
    twin.set_limit("r", count=100, period_ms=1000, now=0)
    assert twin.ledger.room("r", 0) == 40
    twin.set_limit("r", count=1, period_ms=1000, burst=2, now=0)
    assert (twin.ledger.room("r", 999), twin.ledger.room("r", 1000)) == (0, 1), "no more than its burst"
    twin.set_limit("r", count=1, period_ms=1000, burst=2, now=1500)
    assert (twin.ledger.room("r", 1999), twin.ledger.room("r", 2000)) == (1, 2)


def test_a_rate_whose_clock_is_set_back_owes_its_burst_at_most() -> None:
    rate = Rate(1, 1000, 2)
    rate.take(2, 600_000)
    assert (rate.room(0), rate.refilled_at(1, 0)) == (0, 1000)
    assert (rate.room(999), rate.room(1000), rate.room(2000)) == (0, 1, 2)


# Slots


def test_a_task_that_could_never_start_is_refused_and_changes_nothing() -> None:
    twin = twin_with({"two": 2, "closed": 0})
    twin.set_limit("r", count=5, period_ms=1000, burst=3, now=0)
    for limits in ({"none": 1}, {"two": 3}, {"r": 4}):
        with pytest.raises(InvalidInput):
            twin.submit(NewTask("a", "k", limits=limits), 0)
    assert not twin.tasks and twin.last_seq == 0
    twin.submit(NewTask("a", "k", limits={"closed": 7}), 0)
    assert claim(twin, 0) == []
    with pytest.raises(InvalidInput):
        twin.set_limit("odd", now=0)


def test_a_limit_lowered_below_its_use_gives_nothing_until_it_is_below_again() -> None:
    twin = twin_with({"l": 3})
    for name in "abcd":
        twin.submit(NewTask(name, "k", limits={"l": 1}), 0)
    assert claim(twin, 0) == ["a", "b", "c"]
    twin.set_limit("l", slots=1, now=0)
    twin.complete("a", twin.tasks["a"].fence, 0)
    twin.complete("b", twin.tasks["b"].fence, 0)
    assert claim(twin, 0) == []
    twin.complete("c", twin.tasks["c"].fence, 0)
    assert claim(twin, 0) == ["d"]


def test_a_paused_limit_and_a_paused_type_let_no_task_start() -> None:
    twin = twin_with({"l": 1})
    twin.submit(NewTask("a", "k", limits={"l": 1}), 0)
    twin.pause_limit("l", True, 0)
    assert claim(twin, 0) == []
    twin.set_limit("l", slots=2, now=0)
    assert claim(twin, 0) == []
    twin.pause_limit("l", False, 0)
    twin.pause_type("k", True, 0)
    assert claim(twin, 0) == []
    twin.pause_type("k", False, 0)
    assert claim(twin, 0) == ["a"]
    with pytest.raises(UnknownLimit):
        twin.pause_limit("none", True, 0)


def test_a_paused_rate_gives_nothing() -> None:
    twin = twin_with({})
    twin.set_limit("r", count=1, period_ms=1000, now=0)
    twin.pause_limit("r", True, 0)
    with pytest.raises(LimitFull):
        twin.acquire("r", "l", 1, 100, 0)


def test_a_lease_without_a_task_takes_units_until_it_is_released_or_ends() -> None:
    twin = twin_with({"l": 2}, Policy(grace=10))
    assert twin.acquire("l", "x", 2, 100, 0) == 1
    assert twin.acquire("l", "x", 2, 100, 0) == 1
    twin.submit(NewTask("a", "k", limits={"l": 1}), 0)
    with pytest.raises(LimitFull):
        twin.acquire("l", "y", 1, 100, 0)
    with pytest.raises(UnknownLimit):
        twin.acquire("none", "y", 1, 100, 0)
    with pytest.raises(Fenced):
        twin.release_lease("x", 7)
    assert twin.renew_lease("x", 1, 100, 50) == 150
    assert claim(twin, 159) == []
    assert twin.next_instant(159) == 160
    assert claim(twin, 160) == ["a"]
    twin.release_lease("y", twin.acquire("l", "y", 1, 100, 160))
    assert twin.ledger.used("l") == 1


# Overlap


def test_nested_limits_do_not_overlap_and_others_do() -> None:
    seen = Companions()
    seen.see({"slow": 1, "fast": 1}, frozenset())
    seen.see({"fast": 1}, frozenset())
    assert seen.overlapping(["slow", "fast"]) == set()
    seen.see({"slow": 1}, frozenset())
    assert seen.overlapping(["slow", "fast"]) == {"slow", "fast"}
    assert seen.overlapping(["slow"]) == set()


@pytest.mark.parametrize("spoiler", ["units", "capabilities", "lease"])
def test_several_units_other_capabilities_or_a_lease_without_a_task_make_limits_overlap(spoiler: str) -> None:
    seen = Companions()
    seen.see({"slow": 1, "fast": 1}, frozenset())
    seen.see({"fast": 1}, frozenset())
    if spoiler == "units":
        seen.see({"slow": 1, "fast": 2}, frozenset())
    elif spoiler == "capabilities":
        seen.see({"slow": 1, "fast": 1}, frozenset({"gpu"}))
    else:
        seen.see_alone("slow")
    seen.see({"slow": 1, "fast": 1}, frozenset())
    assert seen.overlap("slow", "fast")


def test_leases_without_a_task_are_seen_by_the_twin() -> None:
    twin = twin_with({"1": 1, "2": 1})
    twin.submit(NewTask("both", "k", limits={"1": 1, "2": 1}), 0)
    twin.acquire("1", "x", 1, 100, 0)
    assert not twin.ledger.companions.overlap("1", "2")
    twin.acquire("2", "y", 1, 100, 0)
    assert twin.ledger.companions.overlap("1", "2")


# Holds


def overtaken(policy: Policy, until: int) -> int | None:
    """Tasks of 8 s come for limits 1 and 2 in turns, every 4 s; when does the one that needs both start?"""
    twin = twin_with({"1": 1, "2": 1}, policy)
    for now in range(0, until, 4_000):
        for task in list(twin.running.values()):
            if task.started + 8_000 <= now:
                twin.complete(task.id, task.fence, now)
        limit = "12"[now // 4_000 % 2]
        twin.submit(NewTask(f"single{now}", "k", limits={limit: 1}), now)
        if "both" in claim(twin, now):
            return now
        twin.submit(NewTask("both", "k", limits={"1": 1, "2": 1}), now)
    return None


def test_a_task_that_needs_two_limits_starves_without_a_hold_and_not_with_one() -> None:
    assert overtaken(Policy(hold_after=FOREVER), until=400_000) is None
    assert overtaken(Policy(hold_after=30_000), until=400_000) == 36_000


def waiting_for_both(policy: Policy, priority: Priority = Priority.MEDIUM) -> Twin:
    """`one` runs in limit 1; `both` waits for it, long enough to have a hold on 1 and 2."""
    twin = twin_with({"1": 1, "2": 1}, policy)
    twin.submit(NewTask("one", "k", limits={"1": 1}), 0)
    twin.submit(NewTask("two", "k", limits={"2": 1}), 0)
    claim(twin, 0)
    twin.complete("two", twin.tasks["two"].fence, 0)
    twin.submit(NewTask("both", "k", priority, limits={"1": 1, "2": 1}), 0)
    twin.submit(NewTask("other", "k", priority, limits={"2": 1}, fair="x"), 0)
    twin.make_holds(policy.hold_after - 1)
    assert not twin.ledger.holds
    assert claim(twin, policy.hold_after) == []
    assert [hold.head for hold in twin.ledger.holds.values()] == ["both"]
    return twin


def test_a_hold_keeps_units_from_all_but_better_priorities() -> None:
    twin = waiting_for_both(Policy(hold_after=100))
    with pytest.raises(LimitFull):
        twin.acquire("2", "l", 1, 100, 100)
    twin.submit(NewTask("urgent", "k", Priority.HIGH, limits={"2": 1}), 100)
    assert claim(twin, 100) == ["urgent"]


def test_a_hold_ends_with_the_start_of_its_sub_queue() -> None:
    twin = waiting_for_both(Policy(hold_after=100))
    twin.complete("one", twin.tasks["one"].fence, 100)
    assert claim(twin, 100) == ["both"]
    assert not twin.ledger.holds


def test_a_hold_ends_even_if_another_of_its_sub_queue_starts() -> None:
    twin = waiting_for_both(Policy(hold_after=100))
    twin.complete("one", twin.tasks["one"].fence, 100)
    twin.claim("w", 1, FOREVER, 100)
    twin.submit(NewTask("next", "k", limits={"1": 1, "2": 1}), 100)
    claim(twin, 200)
    assert [hold.head for hold in twin.ledger.holds.values()] == ["next"]
    twin.release("both", twin.tasks["both"].fence, 200)
    assert claim(twin, 200) == ["both"]
    assert not twin.ledger.holds


def test_a_promoted_task_has_been_patient_enough() -> None:
    twin = twin_with({"1": 1, "2": 1}, Policy(hold_after=1000, medium_to_high=50))
    for limit in "12":
        twin.submit(NewTask(limit, "k", limits={limit: 1}), 0)
    claim(twin, 0)
    twin.submit(NewTask("both", "k", limits={"1": 1, "2": 1}), 0)
    claim(twin, 49)
    assert not twin.ledger.holds
    claim(twin, 50)
    assert [hold.sub_queue for hold in twin.ledger.holds.values()] == ["0p:k;|1=1,2=1"]


def test_a_task_that_can_start_needs_no_hold_even_if_this_worker_cannot_serve_it() -> None:
    twin = twin_with({"1": 1, "2": 1}, Policy(hold_after=0))
    twin.register(Worker("able", frozenset({"gpu"})), 0)
    twin.submit(NewTask("both", "k", capabilities=frozenset({"gpu"}), limits={"1": 1, "2": 1}), 0)
    for limit in "12":
        twin.submit(NewTask(limit, "k", limits={limit: 1}), 0)
    assert claim(twin, 0) == ["1", "2"]
    assert claim(twin, 999) == [] and not twin.ledger.holds, "it was looked at a moment ago"
    assert claim(twin, 1000) == [] and len(twin.ledger.holds) == 1


def test_a_task_that_no_worker_serves_holds_nothing() -> None:
    twin = twin_with({"1": 1, "2": 1}, Policy(hold_after=0, worker_ttl=10_000))
    for limit in "12":
        twin.submit(NewTask(limit, "k", limits={limit: 1}), 0)
    claim(twin, 0)
    twin.submit(NewTask("both", "k", capabilities=frozenset({"gpu"}), limits={"1": 1, "2": 1}), 0)
    assert claim(twin, 0) == [] and not twin.ledger.holds
    twin.register(Worker("able", frozenset({"gpu"})), 1000)
    assert claim(twin, 1000) == [] and len(twin.ledger.holds) == 1
    twin.heartbeat("w", 9000)
    assert claim(twin, 11_001) == [] and len(twin.ledger.holds) == 1, "its loss has not been noticed yet"
    twin.bury(11_001)
    assert claim(twin, 11_001) == [] and not twin.ledger.holds


def test_a_task_that_lacks_units_it_would_not_hold_holds_nothing() -> None:
    twin = twin_with({"1": 1, "2": 1}, Policy(hold_after=0))
    twin.set_limit("rate", count=1, period_ms=5000, burst=1, now=0)
    for limit in ("1", "2", "rate"):
        twin.submit(NewTask(limit, "k", limits={limit: 1}), 0)
    claim(twin, 0)
    twin.submit(NewTask("all", "k", limits={"1": 1, "2": 1, "rate": 1}), 0)
    assert claim(twin, 4999) == [] and not twin.ledger.holds
    assert claim(twin, 5999) == [] and len(twin.ledger.holds) == 1


def test_a_hold_that_brings_no_start_ends_and_comes_again_after_as_long() -> None:
    twin = waiting_for_both(Policy(hold_after=100, hold_for=5000))
    assert claim(twin, 5099) == [] and len(twin.ledger.holds) == 1
    assert claim(twin, 5100) == ["other"] and not twin.ledger.holds
    twin.complete("other", twin.tasks["other"].fence, 5100)
    twin.submit(NewTask("another", "k", limits={"2": 1}), 10_000)
    assert claim(twin, 10_099) == ["another"]
    assert claim(twin, 10_100) == [] and len(twin.ledger.holds) == 1


@pytest.mark.parametrize("looks", [1, 2])
def test_the_number_of_sub_queues_looked_at_is_bounded(looks: int) -> None:
    twin = twin_with({name: 1 for name in "1234"}, Policy(hold_after=0, hold_looks=looks))
    for name in "1234":
        twin.submit(NewTask(name, "k", limits={name: 1}), 0)
    claim(twin, 0)
    twin.submit(NewTask("single", "k", limits={"1": 1}), 0)
    twin.submit(NewTask("a", "k", limits={"1": 1, "2": 1}), 1)
    twin.submit(NewTask("b", "k", limits={"3": 1, "4": 1}), 2)
    claim(twin, 3)
    assert [hold.head for hold in twin.ledger.holds.values()] == ["a", "b"][:looks]
    twin.pause_limit("3", True, 3)
    assert [hold.head for hold in twin.ledger.holds.values()] == ["a"]


@pytest.mark.parametrize("end", ["cancel", "pause", "shrink", "promotion"])
def test_a_hold_ends_when_its_head_leaves_or_cannot_start(end: str) -> None:
    twin = waiting_for_both(Policy(hold_after=100, medium_to_high=200))
    if end == "cancel":
        twin.cancel("both", 100)
    elif end == "pause":
        twin.pause_limit("1", True, 100)
    elif end == "shrink":
        twin.set_limit("1", slots=0, now=100)
    else:
        twin.promote(200)
    assert not twin.ledger.holds
    if end != "promotion":
        assert claim(twin, 100) == ["other"]


def test_two_holds_never_share_a_limit_and_the_most_patient_comes_first() -> None:
    policy = Policy(hold_after=10)
    twin = twin_with({"1": 1, "2": 1, "3": 1}, policy)
    for number in "123":
        twin.submit(NewTask(number, "k", limits={number: 1}), 0)
    claim(twin, 0)
    twin.submit(NewTask("b", "k", limits={"2": 1, "3": 1}), 0)
    twin.submit(NewTask("a", "k", limits={"1": 1, "2": 1}), 1)
    claim(twin, 50)
    assert [hold.head for hold in twin.ledger.holds.values()] == ["b"]
    claim(twin, 51)
    assert [hold.head for hold in twin.ledger.holds.values()] == ["b"]


NESTED = [{"fast": 1}, {"medium": 1, "fast": 1}, {"slow": 1, "medium": 1, "fast": 1}, {"side": 1, "fast": 1}]


@quick
@given(
    acts=st.lists(st.tuples(st.sampled_from(NESTED), st.sampled_from(Priority), st.booleans()), max_size=40),
    sizes=st.fixed_dictionaries({name: st.integers(1, 3) for name in ("slow", "medium", "fast", "side")}),
)
def test_nested_limits_never_make_a_hold(
    acts: list[tuple[dict[str, int], Priority, bool]], sizes: dict[str, int]
) -> None:
    twin = twin_with(sizes, Policy(hold_after=0), capacity=5)
    for now, (limits, base, finish) in enumerate(acts):
        twin.submit(NewTask(f"t{now}", "k", base, limits=limits), now)
        claim(twin, now)
        assert not twin.ledger.holds
        if finish and twin.running:
            task = next(iter(twin.running.values()))
            twin.complete(task.id, task.fence, now)
