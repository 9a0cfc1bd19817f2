"""Tiers in the rules: tasks behind never delay those ahead, and runs stay within their tier."""

import heapq
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Tier, Worker

TIERS = (Tier("fast", 3_000), Tier("medium", 10_000, share=50), Tier("slow", 30_000, slots=1))
LIMITS = {tier.name: tier.ms for tier in TIERS}
NEVER = 10**9


@dataclass(frozen=True)
class Wish:
    """A task that comes at a time and would run this long."""

    at: int
    work: int
    duration: str | None


wishes = st.lists(
    st.builds(
        Wish,
        at=st.integers(0, 20).map(lambda seconds: seconds * 1000),
        work=st.integers(1, 40).map(lambda seconds: seconds * 1000),
        duration=st.sampled_from([None, None, "fast", "medium", "slow"]),
    ),
    min_size=1,
    max_size=12,
)


def played(wanted: list[Wish], slots: int) -> tuple[list[int], Twin]:
    """When each task starts, by the order of the wishes. Workers confirm at once."""
    calm = {
        "low_to_medium": 0,
        "medium_to_high": 0,
        "low_to_high": 0,
        "hold_after": NEVER,
        "worker_ttl": NEVER,
    }
    twin = Twin(Policy(tiers=TIERS, **calm))
    twin.register(Worker("w", capacity=slots), 0)
    starts = [-1] * len(wanted)
    instants = [(wish.at, 0, number) for number, wish in enumerate(wanted)]
    heapq.heapify(instants)
    while instants:
        now, is_end, number = heapq.heappop(instants)
        name = f"{number:02}"
        if not is_end:
            twin.submit(NewTask(name, "k", duration=wanted[number].duration), now)
        elif name not in twin.running or twin.tasks[name].deadline < now != ends_at(twin, wanted, name):
            continue
        elif ends_at(twin, wanted, name) == now:
            twin.complete(name, twin.tasks[name].fence, now)
        twin.heartbeat("w", now)
        for again in range(len(wanted)):
            for started in twin.claim("w", slots, NEVER, now):
                starts[int(started)] = now
            for task in twin.running.values():
                heapq.heappush(instants, (ends_at(twin, wanted, task.id), 1, int(task.id)))
            revoked = [task for task in twin.running.values() if task.revoked]
            if not revoked and again:
                break
            for task in revoked:
                twin.shortened(task.id, task.fence)
    return starts, twin


def ends_at(twin: Twin, wanted: list[Wish], name: str) -> int:
    task = twin.tasks[name]
    return max(task.started, min(task.started + wanted[int(name)].work, task.deadline))


@given(ahead=wishes, behind=wishes, slots=st.integers(1, 4))
def test_tasks_behind_never_delay_those_ahead(ahead: list[Wish], behind: list[Wish], slots: int) -> None:
    last = max(wish.at for wish in ahead)
    later = [Wish(last + wish.at, wish.work, wish.duration) for wish in behind]
    ahead = sorted(ahead, key=lambda wish: wish.at)
    alone, _ = played(ahead, slots)
    together, _ = played(ahead + later, slots)
    assert -1 not in alone and -1 not in together
    assert all(both <= one for both, one in zip(together, alone, strict=False)), (alone, together)


@given(wanted=wishes, slots=st.integers(1, 4))
def test_no_run_is_longer_than_its_tier_and_an_elastic_one_gets_the_shortest(
    wanted: list[Wish], slots: int
) -> None:
    _, twin = played(wanted, slots)
    for task in twin.tasks.values():
        allowed = task.deadline - task.started
        assert allowed <= LIMITS[task.tier or ""]
        assert allowed >= LIMITS["fast"], "an elastic task may always run as long as a fast one"
