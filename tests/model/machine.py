"""Random acts on the real store and on the rules: both must choose, count and remember the same.

One machine is one history. `claims` counts the claims of all histories.
"""

import itertools
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from fairlead.model.limit import Lease
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Worker
from fairlead.rules.values import Tier as RuledTier
from fairlead.settings import (
    Fairness,
    LeaseSettings,
    Promotion,
    Rate,
    RetrySettings,
    Scheduling,
    Settings,
    Slots,
    TaskSettings,
)
from fairlead.settings.tiers import Tier, Victim, tiers_of
from fairlead.store.replies import handed_by
from fairlead.store.store import Store
from fairlead.store.workers import TAKE
from tests.connections import connected
from tests.model.comparison import Comparison
from tests.model.task_specs import CUSTOMERS, LEASES, LIMITS, TYPES, WEIGHTS, TaskSpec, task_specs
from tests.renewing import renewed_by

LEASE = 20_000
WORKERS = ("w0", "w1", "w2")
HOLDER, NOBODY = "holder", ""  # the reporter of a task, besides a worker of this name
names = itertools.count()


def ruled_tier(name: str, tier: Tier) -> RuledTier:
    share = int(tier.limit[:-1]) if isinstance(tier.limit, str) else 100
    slots = tier.limit if isinstance(tier.limit, int) else None
    return RuledTier(name, round((tier.seconds or 0) * 1000), slots, share)


class Machine(Comparison):
    claims: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[Lease] = []
        self.last_fence: dict[str, int] = {}
        self.handed: dict[str, list[Grant]] = {}  # what workers were handed since they last claimed

    def tiers(self) -> dict[str, Tier | Victim]:
        return {}

    @initialize(
        budget=st.sampled_from([0, 1, 2, 5]),
        slots=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(3, 5)),
        burst=st.integers(2, 4),
        hold_after=st.sampled_from([0, 5_000, 30_000]),
    )
    def begin(self, budget: int, slots: tuple[int, int, int], burst: int, hold_after: int) -> None:
        settings = Settings(
            promotion=Promotion(budget=budget, low_to_medium_seconds=60, medium_to_high_seconds=120),
            fairness=Fairness(weights=WEIGHTS),
            scheduling=Scheduling(hold_after_seconds=hold_after / 1000),
            retry=RetrySettings(base_seconds=1, max_seconds=8),
            lease=LeaseSettings(lease_seconds=LEASE / 1000, grace_seconds=1),
            tiers=self.tiers(),
        )
        policy = Policy(
            budget=budget,
            low_to_medium=60_000,
            low_to_high=180_000,
            medium_to_high=120_000,
            hold_after=hold_after,
            grace=1_000,
            retry_base=1_000,
            retry_max=8_000,
            tiers=tuple(ruled_tier(name, tier) for name, tier in tiers_of(settings.tiers).items()),
        )
        self.twin = Twin(policy)
        self.twin.follow_capacity(self.now)
        connection = connected(self.url, f"model-{next(names)}")
        self.store = Store(connection, settings, clock=lambda: str(self.now))
        self.wait(self.store.open())
        types = {name: TaskSettings(lease_seconds=lease / 1000) for name, lease in LEASES.items()}
        self.wait(self.store.declare("code", types, {}))
        for name, count in zip(LIMITS, slots, strict=False):
            self.set_slots(name, count)
        self.both(
            lambda: self.twin.set_limit("api", count=10, period_ms=10_000, burst=burst, now=self.now),
            self.store.limits.set("api", Rate(count=10, period_seconds=10, burst=burst)),
            relieves=False,
        )
        for name in CUSTOMERS:
            self.set_slots(name, 1)
        self.register("w0", frozenset({"gpu", "big"}), frozenset(TYPES), 4, 1)
        self.register("w1", frozenset({"gpu"}), frozenset({"render"}), 2, 0)
        self.register("w2", frozenset(), frozenset(TYPES), 2, 1)

    def set_slots(self, name: str, count: int) -> None:
        self.both(
            lambda: self.twin.set_limit(name, slots=count, now=self.now),
            self.store.limits.set(name, Slots(limit=count)),
            relieves=False,
        )

    def register(
        self,
        name: str,
        capabilities: frozenset[str],
        types: frozenset[str] | None,
        capacity: int,
        reserve: int,
    ) -> None:
        worker = Worker(id=name, capabilities=capabilities, types=types, capacity=capacity, reserve=reserve)
        self.both(
            lambda: self.twin.register(worker, self.now),
            self.store.workers.register(
                name, capabilities=capabilities, task_types=types, capacity=capacity, reserve=reserve
            ),
        )

    @rule(ms=st.sampled_from([1, 250, 1_000, 3_000, 10_000, 25_000, 70_000, 130_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(specs=st.lists(task_specs, min_size=1, max_size=6))
    def submit(self, specs: list[TaskSpec]) -> None:
        for submitted, new in (one.as_task(self.now) for one in specs):
            expected, found = self.both(
                lambda new=new: self.twin.submit(new, self.now),
                self.store.submit(submitted),
                relieves=False,
            )
            if not isinstance(expected, type):
                assert found[0].status == expected.state
                self.ids.append(submitted.task_id)
            self.receive_calls()
            self.relieve()

    def receive_calls(self) -> None:
        """A worker that waits may have been handed a task: the very one that it would have claimed."""
        for worker in list(self.twin.workers):
            while word := self.wait(self.next_word(worker)):
                if word.startswith(TAKE):
                    task = handed_by(word.removeprefix(TAKE)).task
                    known = self.twin.workers[worker]
                    seen, lost = known.seen, known.lost_in_company
                    if not self.hand(worker, task):
                        continue
                    self.twin.reindex()
                    known.seen, known.lost_in_company = seen, lost  # it has not reported
                    self.note(task)
                    self.handed.setdefault(worker, []).append(Grant(task.task_id, task.fence))
                    Machine.seen["handed over"] += 1

    def hand(self, worker: str, task: Task) -> bool:
        """Whether the worker did not have it yet."""
        assert self.twin.hand(worker, LEASE, self.now) == [task.task_id]
        return True

    @rule(
        order=st.permutations(WORKERS),
        specs=st.lists(task_specs, min_size=1, max_size=4),
        acknowledged=st.booleans(),
    )
    def submit_to_waiting_workers(self, order: list[str], specs: list[TaskSpec], acknowledged: bool) -> None:
        for worker in order:
            self.claim(worker, 4, beat=True, idle=True, acknowledged=acknowledged)
        self.submit(specs)

    async def next_word(self, worker: str) -> Any:
        return await self.store.connection.client.lpop(self.store.connection.keys.key("wake", worker))

    @rule(order=st.permutations(WORKERS), want=st.integers(1, 3))
    def all_claim(self, order: list[str], want: int) -> None:
        for worker in order:
            self.claim(worker, want, beat=True)

    @rule(
        worker=st.sampled_from(WORKERS),
        want=st.integers(1, 4),
        beat=st.booleans(),
        idle=st.booleans(),
        acknowledged=st.booleans(),
    )
    def claim(
        self, worker: str, want: int, beat: bool, idle: bool = False, acknowledged: bool = True
    ) -> None:
        if beat:
            self.both(
                lambda: self.twin.heartbeat(worker, self.now),
                self.store.workers.heartbeat(worker, []),
                relieves=False,
            )
        Machine.claims += 1
        handed = self.handed.get(worker, [])
        expected, found = self.both(
            lambda: self.twin.claim(worker, want, LEASE, self.now),
            self.store.claim(
                worker,
                want,
                lease_ms=LEASE,
                idle=idle,
                acknowledged=[grant.fence or 0 for grant in handed if acknowledged],
            ),
            relieves=False,
        )
        if isinstance(expected, type):
            self.both(
                lambda: self.twin.register(self.twin.workers[worker], self.now),
                self._register_again(self.twin.workers[worker]),
            )
            return
        # tasks that it was handed, still holds and has not acknowledged come first, with a new lease
        again = [grant for grant in handed if not acknowledged and self.is_held(worker, grant)]
        for grant in again:
            self.twin.renew(grant.id, grant.fence or 0, LEASE, self.now)
        del handed[:]
        assert [task.task_id for task in found.tasks] == [*(grant.id for grant in again), *expected]
        for task in found.tasks[len(again) :]:
            self.note(task)

    def is_held(self, worker: str, grant: Grant) -> bool:
        task = self.twin.tasks[grant.id]
        return (task.state, task.worker, task.fence) == (State.EXECUTING, worker, grant.fence)

    def note(self, task: Task) -> None:
        assert task.fence > self.last_fence.get(task.task_id, 0)
        self.last_fence[task.task_id] = task.fence

    async def _register_again(self, worker: Worker) -> None:
        await self.store.workers.register(
            worker.id,
            capabilities=worker.capabilities,
            task_types=worker.types,
            capacity=worker.capacity,
            reserve=worker.reserve,
        )

    @rule(
        turns=st.lists(
            st.tuples(st.sampled_from(WORKERS), st.integers(1, 3), st.integers(0, 3)),
            min_size=4,
            max_size=16,
        )
    )
    def busy_hour(self, turns: list[tuple[str, int, int]]) -> None:
        """Claims and completions by turns, time passing between them."""
        for worker, want, finished in turns:
            self.claim(worker, want, beat=True)
            self.now += 700
            for number in range(finished):
                if (chosen := self.some(number, State.EXECUTING)) is not None:
                    fence, holder = self.fence_of(chosen, stale=False), self.named(chosen, HOLDER)
                    following = self.following(chosen)
                    self.both(
                        partial(self.twin.complete, chosen, fence, self.now, following, holder),
                        self.store.complete(holder, Completed(chosen, fence)),
                    )
                    self.note_following(following)

    @rule(
        specs=st.lists(task_specs, min_size=1, max_size=4),
        survivors=st.sets(st.sampled_from(WORKERS)),
        pauses=st.lists(st.sampled_from([2_000, 6_000, 14_000, 15_000]), min_size=2, max_size=4),
    )
    def some_fall_silent(self, specs: list[TaskSpec], survivors: set[str], pauses: list[int]) -> None:
        """Leases end while only some of the workers report."""
        self.submit(specs)
        for worker in WORKERS:
            self.claim(worker, 2, beat=True)
        for pause in pauses:
            self.now += pause
            for worker in sorted(survivors):
                beat = self.store.workers.heartbeat(worker, [])
                self.both(partial(self.twin.heartbeat, worker, self.now), beat, relieves=False)
        self.expire()

    def some(self, number: int, *states: State) -> str | None:
        chosen = [i for i in self.ids if not states or self.twin.tasks[i].state in states]
        return chosen[number % len(chosen)] if chosen else None

    def fence_of(self, task_id: str, stale: bool) -> int:
        task = self.twin.tasks[task_id]
        held = task.fence if task.stopping is None else task.stopping
        return max(0, held - 1) if stale else held

    def named(self, task_id: str, speaker: str) -> str:
        return self.twin.tasks[task_id].worker or WORKERS[0] if speaker == HOLDER else speaker

    running = st.sampled_from(
        [(State.EXECUTING,), (State.EXECUTING,), (State.EXECUTING, State.CANCELLED), ()]
    )
    stale = st.sampled_from([False, False, False, True])
    speaker = st.sampled_from([HOLDER, HOLDER, HOLDER, HOLDER, NOBODY, "w1"])

    @rule(number=st.integers(0, 99), states=running, stale=stale, speaker=speaker)
    def complete(self, number: int, states: tuple[State, ...], stale: bool, speaker: str) -> None:
        if (chosen := self.some(number, *states)) is None:
            return
        fence, worker = self.fence_of(chosen, stale), self.named(chosen, speaker)
        following = self.following(chosen)
        self.both(
            lambda: self.twin.complete(chosen, fence, self.now, following, worker),
            self.store.complete(worker, Completed(chosen, fence, {"n": number})),
        )
        self.note_following(following)

    def following(self, task_id: str) -> list[NewTask]:
        """What the store queues by itself when this task is completed: the next step of its job."""
        return []

    def note_following(self, following: list[NewTask]) -> None:
        self.ids += [new.id for new in following if new.id in self.twin.tasks and new.id not in self.ids]

    @rule(
        number=st.integers(0, 99),
        states=running,
        stale=stale,
        code=st.sampled_from(["error", "timeout"]),
        retriable=st.booleans(),
        jitter=st.sampled_from([0, 300, 1000]),
        retry_after=st.sampled_from([0, 0, 4_000]),
        crashed=st.sampled_from([False, False, True]),
        speaker=speaker,
    )
    def fail(
        self,
        number: int,
        states: tuple[State, ...],
        stale: bool,
        code: str,
        retriable: bool,
        jitter: int,
        retry_after: int,
        crashed: bool,
        speaker: str,
    ) -> None:
        if (chosen := self.some(number, *states)) is None:
            return
        fence, worker = self.fence_of(chosen, stale), self.named(chosen, speaker)
        report = Failed(chosen, fence, code, "no", retriable, retry_after, jitter, crashed)
        expected, found = self.both(
            lambda: self.twin.fail(
                chosen, fence, code, retriable, jitter, retry_after, self.now, crashed, worker
            ),
            self.store.fail(worker, report),
        )
        if not isinstance(expected, type):
            assert found == [expected]

    @rule(number=st.integers(0, 99), states=running, stale=stale, speaker=speaker)
    def release(self, number: int, states: tuple[State, ...], stale: bool, speaker: str) -> None:
        if (chosen := self.some(number, *states)) is not None:
            fence, worker = self.fence_of(chosen, stale), self.named(chosen, speaker)
            self.both(
                lambda: self.twin.release(chosen, fence, self.now, worker),
                self.store.release(worker, Grant(chosen, fence)),
            )

    @rule(worker=st.sampled_from(WORKERS), kept=st.sets(st.integers(0, 3)))
    def stall(self, worker: str, kept: set[int]) -> None:
        """Of what it holds it has begun these, by their number."""
        known = worker in self.twin.workers
        held = self.twin.running_on(self.twin.workers[worker]) if known else []
        begun = {task.lease_fence for n, task in enumerate(held) if n in kept}
        expected, found = self.both(
            lambda: self.twin.stall(worker, begun, self.now),
            self.store.workers.stall(worker, f"s{next(names)}", begun),
        )
        if not isinstance(expected, type):
            assert {(grant.id, grant.fence) for grant in found} == expected
            Machine.seen["given back"] += len(expected)

    @rule(number=st.integers(0, 99), stale=stale)
    def renew(self, number: int, stale: bool) -> None:
        if (chosen := self.some(number, State.EXECUTING)) is not None:
            fence, worker = self.fence_of(chosen, stale), self.named(chosen, HOLDER)

            def renew() -> None:
                self.twin.heartbeat(worker, self.now)
                self.twin.renew(chosen, fence, LEASE, self.now)

            renewed = renewed_by(self.store, worker, Grant(chosen, fence), lease_ms=LEASE)
            self.both(renew, renewed, relieves=False)

    @rule(
        number=st.integers(0, 99),
        states=running,
        stale=stale,
        ms=st.sampled_from([1, 30_000, 400_000]),
        speaker=speaker,
    )
    def extend(self, number: int, states: tuple[State, ...], stale: bool, ms: int, speaker: str) -> None:
        if (chosen := self.some(number, *states)) is not None:
            fence, worker = self.fence_of(chosen, stale), self.named(chosen, speaker)
            expected, found = self.both(
                lambda: self.twin.extend(chosen, fence, ms, LEASE, self.now, worker),
                self.store.extend(worker, Grant(chosen, fence), ms),
                relieves=False,
            )
            assert found == expected

    @rule(number=st.integers(0, 99))
    def cancel(self, number: int) -> None:
        if (chosen := self.some(number)) is not None:
            self.both(lambda: self.twin.cancel(chosen, self.now), self.store.cancel(chosen))

    @rule(number=st.integers(0, 99))
    def replay(self, number: int) -> None:
        chosen = self.some(number, State.FAILED, State.DEAD_LETTER, State.COMPLETED)
        if chosen is not None and self.twin.tasks[chosen].job is None:
            self.both(lambda: self.twin.replay(chosen, self.now), self.store.replay(chosen))

    @rule(name=st.sampled_from(LIMITS[:3]), count=st.integers(0, 5))
    def change_limit(self, name: str, count: int) -> None:
        self.set_slots(name, count)

    @rule(
        count=st.sampled_from([1, 7, 10, 300]), period=st.sampled_from([3, 10, 60]), burst=st.integers(1, 5)
    )
    def change_rate(self, count: int, period: int, burst: int) -> None:
        self.both(
            lambda: self.twin.set_limit("api", None, count, period * 1000, burst, now=self.now),
            self.store.limits.set("api", Rate(count=count, period_seconds=period, burst=burst)),
            relieves=False,
        )

    @rule(name=st.sampled_from([*LIMITS, *CUSTOMERS[:2]]), again=st.integers(0, 3))
    def delete_limit(self, name: str, again: int) -> None:
        """If it is deleted, it is usually defined again at once, without its memory."""
        problem, _ = self.both(
            lambda: self.twin.delete_limit(name), self.store.limits.delete(name), relieves=False
        )
        if problem is None and again:
            Machine.seen["deleted"] += 1
            if name == "api":
                self.change_rate(10, 10, again)
            else:
                self.set_slots(name, again)

    @rule(name=st.sampled_from(LIMITS), paused=st.booleans())
    def pause(self, name: str, paused: bool) -> None:
        self.both(
            lambda: self.twin.pause_limit(name, paused, self.now),
            self.store.limits.pause(name, paused),
            relieves=False,
        )

    @rule(kind=st.sampled_from(TYPES), paused=st.booleans())
    def pause_type(self, kind: str, paused: bool) -> None:
        self.both(
            lambda: self.twin.pause_type(kind, paused, self.now),
            self.store.pause_type(kind, paused),
            relieves=False,
        )

    @rule(name=st.sampled_from(LIMITS), units=st.integers(1, 2))
    def acquire(self, name: str, units: int) -> None:
        lease_id = f"l{next(names):06}"
        expected, found = self.both(
            lambda: self.twin.acquire(name, f"lease:{lease_id}", units, LEASE, self.now),
            self.store.limits.acquire(name, units=units, lease_ms=LEASE, lease_id=lease_id),
        )
        if not isinstance(expected, type):
            assert found.fence == expected
            self.leases.append(found)

    @precondition(lambda self: self.leases)
    @rule(number=st.integers(0, 99))
    def release_lease(self, number: int) -> None:
        lease = self.leases.pop(number % len(self.leases))
        self.both(
            lambda: self.twin.release_lease(f"lease:{lease.lease_id}", lease.fence),
            self.store.limits.release(lease),
        )

    @rule()
    def expire(self) -> None:
        self.both(lambda: self.twin.expire(self.now), self.store.expire())

    @rule(worker=st.sampled_from(["w0", "w1", "w2"]))
    def lose_worker(self, worker: str) -> None:
        lost = self.twin.workers[worker]
        expected, found = self.both(
            lambda: self.twin.lose_worker(worker, self.now), self.store.expire(worker)
        )
        assert found == expected
        self.both(lambda: self.twin.register(lost, self.now), self._register_again(lost))

    @rule()
    def promote(self) -> None:
        self.both(lambda: self.twin.promote(self.now), self.store.run("promote"))
