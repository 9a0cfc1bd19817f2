"""Random schedules, directly on the twin: conditions that must hold after every act."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fairlead.errors import FairleadError
from fairlead.model.priority import Priority
from fairlead.model.states import TERMINAL, Act, State, allowed
from fairlead.rules.limits import Rate, Slots
from fairlead.rules.twin import Twin
from fairlead.rules.values import NewTask, Policy, Task, Worker

POLICY = Policy(
    budget=2, low_to_medium=60, low_to_high=150, medium_to_high=100, hold_after=30, grace=5, retry_base=20
)
WORKERS = [
    Worker("any", frozenset({"gpu", "big"}), capacity=4, reserve=1),
    Worker("plain", frozenset(), frozenset({"a", "b"}), capacity=2),
    Worker("gpu", frozenset({"gpu"}), capacity=3, reserve=2),
]
LIMITS = ["one", "two", "three", "rate"]

index = st.integers(0, 10_000)
new_tasks = st.builds(
    NewTask,
    id=st.just(""),
    type=st.sampled_from("abc"),
    base=st.sampled_from(Priority),
    fair=st.sampled_from(["x", "y"]),
    weight=st.sampled_from([1.0, 3.0]),
    capabilities=st.sampled_from([frozenset[str](), frozenset({"gpu"}), frozenset({"gpu", "big"})]),
    limits=st.dictionaries(st.sampled_from(LIMITS), st.sampled_from([1, 1, 1, 2]), max_size=3),
    timeout=st.sampled_from([20, 1000]),
    max_retries=st.integers(0, 2),
    run_at=st.none() | st.integers(0, 500),
    max_wait=st.none() | st.integers(0, 200),
)


def best(twin: Twin, worker: Worker, now: int) -> str | None:
    """The rule in other words: walk down the queue and take the first task that can start."""

    def place_in_line(task: Task) -> tuple[int, int, int, int]:
        priority, kind = int(task.place[0]), task.place[1]
        first = "p" if twin.turns.streaks[Priority(priority)] >= POLICY.budget else "n"
        return priority, 0 if kind == first else 1, task.tag, task.seq

    mine = [task for task in twin.running.values() if task.worker == worker.id]
    low_slots = worker.capacity - worker.reserve - sum(task.base > 0 for task in mine)
    used = usage(twin)
    for task in sorted(twin.queued.values(), key=place_in_line):
        if len(mine) == worker.capacity or (task.base > 0 and low_slots <= 0):
            continue
        if task.capabilities - worker.capabilities or task.type not in (worker.types or "abc"):
            continue
        if task.type in twin.paused_types:
            continue
        for name, units in task.limits.items():
            limit = twin.ledger.limits[name]
            kept = sum(
                hold.units.get(name, 0)
                for hold in twin.ledger.holds.values()
                if hold.sub_queue != task.sub_queue and hold.priority <= int(task.place[0])
            )
            room = limit.room(now) if isinstance(limit, Rate) else limit.limit - used[name] - kept
            if limit.paused or room < units:
                break
        else:
            return task.id
    return None


def usage(twin: Twin) -> Counter[str]:
    used: Counter[str] = Counter()
    for limits in twin.ledger.taken.values():
        used.update(limits)
    return used


class Schedule(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.twin = Twin(POLICY)
        for name, size in (("one", 1), ("two", 2), ("three", 3)):
            self.twin.set_limit(name, slots=size, now=0)
        self.twin.set_limit("rate", count=2, period_ms=50, burst=3, now=0)
        for worker in WORKERS:
            self.twin.register(worker, 0)
        self.submitted = 0

    def does(self, act: Act, call: Callable[[], object]) -> None:
        """Every change of state must be in the table of states."""
        before = {task.id: task.state for task in self.twin.tasks.values()}
        with suppress(FairleadError):
            call()
        for task in self.twin.tasks.values():
            was = before.get(task.id)
            once = allowed(was, act)
            twice = {state for step in once for state in allowed(step, act)}  # a delay and then patience ends
            assert task.state in {was, *once, *twice}, (was, act, task.state)

    def some_task(self, number: int, *states: State) -> Task | None:
        tasks = [task for task in self.twin.tasks.values() if task.state in states]
        return tasks[number % len(tasks)] if tasks else None

    @rule(new=new_tasks, times=st.integers(1, 3))
    def submit(self, new: NewTask, times: int) -> None:
        for _ in range(times):
            self.submitted += 1
            run_at = None if new.run_at is None else self.now + new.run_at
            named = NewTask(**{**vars(new), "id": f"t{self.submitted:04}", "run_at": run_at})
            self.does(Act.SUBMIT, lambda named=named: self.twin.submit(named, self.now))  # type: ignore[misc]

    @rule(number=index, want=st.integers(1, 4))
    def claim(self, number: int, want: int) -> None:
        worker = WORKERS[number % len(WORKERS)]
        self.twin.heartbeat(worker.id, self.now)
        self.does(Act.EXPIRE, lambda: self.twin.expire(self.now))
        self.does(Act.PROMOTE, lambda: self.twin.promote(self.now))
        for _ in range(want):
            self.twin.make_holds(self.now)
            expected = best(self.twin, worker, self.now)
            started: list[str] = []
            self.does(Act.CLAIM, lambda: started.extend(self.twin.claim(worker.id, 1, 40, self.now)))  # noqa: B023
            assert started == ([expected] if expected else [])
            for name in self.twin.tasks[expected].limits if expected else ():
                limit = self.twin.ledger.limits[name]
                assert isinstance(limit, Rate) or usage(self.twin)[name] <= limit.limit

    @rule(number=index, how=st.sampled_from(["complete", "fail", "fail for good", "release", "renew"]))
    def report(self, number: int, how: str) -> None:
        task = self.some_task(number, State.EXECUTING)
        if task:
            self.report_outcome(task.id, task.fence, how)

    @rule(number=index, fence=index, how=st.sampled_from(["complete", "fail", "release", "renew"]))
    def report_late(self, number: int, fence: int, how: str) -> None:
        task = self.some_task(number, *State)
        if task and task.fence:
            self.report_outcome(task.id, fence % task.fence, how)

    def report_outcome(self, task_id: str, fence: int, how: str) -> None:
        twin, now = self.twin, self.now
        if how == "complete":
            self.does(Act.COMPLETE, lambda: twin.complete(task_id, fence, now))
        elif how == "release":
            self.does(Act.RELEASE, lambda: twin.release(task_id, fence, now))
        elif how == "renew":
            self.does(Act.RENEW, lambda: twin.renew(task_id, fence, 40, now))
        else:
            self.does(Act.FAIL, lambda: twin.fail(task_id, fence, "bad", how == "fail", 500, 0, now))

    @rule(number=index)
    def cancel(self, number: int) -> None:
        task = self.some_task(number, *State)
        if task:
            self.does(Act.CANCEL, lambda: self.twin.cancel(task.id, self.now))

    @rule(number=index)
    def replay(self, number: int) -> None:
        task = self.some_task(number, State.FAILED, State.DEAD_LETTER)
        if task:
            self.does(Act.REPLAY, lambda: self.twin.replay(task.id, self.now))

    @rule(number=index, units=st.integers(1, 2))
    def acquire(self, number: int, units: int) -> None:
        name = LIMITS[number % len(LIMITS)]
        with suppress(FairleadError):
            self.twin.acquire(name, f"l{self.twin.last_fence}", units, 40, self.now)
            limit = self.twin.ledger.limits[name]
            assert isinstance(limit, Rate) or usage(self.twin)[name] <= limit.limit

    @rule(number=index)
    def release_lease(self, number: int) -> None:
        leases = list(self.twin.leases.values())
        if leases:
            lease = leases[number % len(leases)]
            self.twin.release_lease(lease.id, lease.fence)

    @rule(number=index, size=st.integers(0, 3), paused=st.booleans())
    def change_limit(self, number: int, size: int, paused: bool) -> None:
        name = LIMITS[number % 3]
        self.twin.set_limit(name, slots=size, now=self.now)
        self.twin.pause_limit(name, paused, self.now)

    @rule(kind=st.sampled_from("abc"), paused=st.booleans())
    def pause_type(self, kind: str, paused: bool) -> None:
        self.twin.pause_type(kind, paused, self.now)

    @rule(milliseconds=st.sampled_from([0, 1, 10, 40, 100]))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    @rule()
    def wait_for_the_next_instant(self) -> None:
        self.now = self.twin.next_instant(self.now) or self.now

    @invariant()
    def a_lease_holds_all_units_of_its_task_or_none(self) -> None:
        holders = [(task.lease_fence, task.limits) for task in self.twin.running.values()]
        holders += [(lease.fence, lease.limits) for lease in self.twin.leases.values()]
        assert self.twin.ledger.taken == dict(holders)

    @invariant()
    def the_reserve_runs_only_base_high(self) -> None:
        for worker in WORKERS:
            running = [task for task in self.twin.running.values() if task.worker == worker.id]
            assert len(running) <= worker.capacity
            assert sum(task.base != Priority.HIGH for task in running) <= worker.capacity - worker.reserve

    @invariant()
    def every_task_is_in_the_one_index_of_its_state(self) -> None:
        twin = self.twin
        for task in twin.tasks.values():
            assert (task.id in twin.queued) == (task.state is State.QUEUED)
            assert (task.id in twin.delayed) == (task.state is State.DELAYED)
            leased = task.state is State.EXECUTING or task.stopping is not None
            assert (task.id in twin.running) == leased == (task.worker is not None)

    @invariant()
    def a_limit_has_at_most_one_hold_and_each_hold_a_waiting_task(self) -> None:
        holds = self.twin.ledger.holds.values()
        assert all(count == 1 for count in Counter(name for hold in holds for name in hold.units).values())
        for hold in holds:
            assert self.twin.queued[hold.head].sub_queue == hold.sub_queue
            for name, units in hold.units.items():
                limit = self.twin.ledger.limits[name]
                assert isinstance(limit, Slots) and not limit.paused and units <= limit.limit

    @invariant()
    def the_books_forget_what_is_past(self) -> None:
        for ledger in self.twin.shares.ledgers.values():
            assert all(fin > ledger.v for fin in ledger.fin.values())

    def teardown(self) -> None:
        """At the end of every drained schedule nothing is used and nothing is held back."""
        for task in self.twin.tasks.values():
            if task.state not in TERMINAL:
                self.twin.cancel(task.id, self.now)
        self.twin.expire(self.now + 10_000)
        assert not self.twin.ledger.taken and not self.twin.ledger.holds
        assert all(self.twin.ledger.used(name) == 0 for name in LIMITS)
        assert self.twin.next_instant(self.now) is None


Schedule.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestEveryScheduleKeepsThePromises = Schedule.TestCase
