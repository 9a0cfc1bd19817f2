"""Random acts on jobs in the real store and by the book; after every act both say the same.

One player is one history: its own namespace, a clock that only it moves, and the doctor after every act.
"""

import itertools
import random
from collections import Counter
from typing import Self

from fairlead import errors
from fairlead.model.job import ENDED, PENDING, JobStatus, NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import REPLAYABLE, State
from fairlead.settings import (
    LeaseSettings,
    Priorities,
    PriorityDefaults,
    Promotion,
    RetrySettings,
    Settings,
    Slots,
    TaskSettings,
)
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.connections import connected
from tests.model.job_rules import LEASE_MS, RETRIES, RETRY_MS, Book, Step

GRACE_MS = 1_000
PATIENT = PriorityDefaults(max_retries=RETRIES, timeout_seconds=100_000)
SETTINGS = Settings(
    priorities=Priorities(high=PATIENT, medium=PATIENT, low=PATIENT),
    promotion=Promotion(low_to_medium_seconds=60, medium_to_high_seconds=120, budget=0),
    retry=RetrySettings(base_seconds=1, max_seconds=2),
    lease=LeaseSettings(lease_seconds=(LEASE_MS - GRACE_MS) / 1000, grace_seconds=GRACE_MS / 1000),
)
WORDS = ("high", "medium", "low")
TYPES = ("free", "free", "narrow")  # the last under a limit of one
WORKERS = ("v", "w")
names = itertools.count()


class Player:
    """Not Hypothesis: jobs get far only by many acts that fit together, and its histories seldom do."""

    def __init__(self, url: str, seed: int) -> None:
        self.seen: Counter[str] = Counter()  # how jobs ended, and after what they were resumed
        self._dice = random.Random(seed)
        self._now = 1_000_000
        self._books: dict[str, Book] = {}
        self._tasks: dict[str, tuple[Book, Step]] = {}
        self._held: dict[str, str] = {}  # which worker had which task last
        connection = connected(url, f"jobs-{next(names)}")
        self._store = Store(connection, SETTINGS, clock=lambda: str(self._now))

    async def __aenter__(self) -> Self:
        await self._store.open()
        await self._store.limits.set("one", Slots(limit=1))
        await self._store.declare("code", {"narrow": TaskSettings(limits={"one": 1})}, {})
        await self._register()
        return self

    async def __aexit__(self, *_: object) -> None:
        client, prefix = self._store.connection.client, self._store.connection.keys.prefix
        if found := [key async for key in client.scan_iter(match=prefix + "*", count=1000)]:
            await client.delete(*found)
        await self._store.close()

    async def play(self, acts: int) -> None:
        """After each act, both are compared and the doctor comes."""
        weights = {
            self.submit: 3,
            self.claim: 8,
            self.complete: 9,
            self.fail: 5,
            self.release: 1,
            self.report_late: 1,
            self.lose_worker: 2,
            self.cancel: 1,
            self.resume: 3,
            self.replay: 2,
            self.time_passes: 4,
        }
        await self.submit()
        for act in self._dice.choices(list(weights), list(weights.values()), k=acts):
            await act()
            await self._store.promote()
            for book in self._books.values():
                book.time_is(self._now)
            try:
                await self._compare()
            except AssertionError as difference:
                difference.add_note(f"after {act.__name__}")
                raise
        for book in self._books.values():
            self.seen.update(book.ended)

    async def submit(self) -> None:
        dice, indexes = self._dice, itertools.count()
        kinds = [
            [dice.choice(TYPES) for _ in range(dice.choice((1, 1, 2, 3)))] for _ in range(dice.randint(1, 4))
        ]
        priority, max_wait = dice.randrange(3), dice.choice((None, None, 30_000))
        stages = [[Step(next(indexes), place) for _ in stage] for place, stage in enumerate(kinds)]
        book = Book(priority, self._now, max_wait, stages)
        wanted = NewJob(
            feature_name="random",
            stages=[[NewStep(kind, kind) for kind in stage] for stage in kinds],
            priority=WORDS[priority],
            max_wait_seconds=max_wait and max_wait / 1000,
        )
        await self._store.jobs.submit(wanted)
        book.begin(self._now)
        self._books[wanted.job_id] = book
        job = await self._store.jobs.get(wanted.job_id)
        self._tasks |= {known.task_id: (book, book.steps[known.index]) for known in job.steps}

    async def claim(self) -> None:
        worker = self._dice.choice(WORKERS)
        for task in (await self._store.claim(worker, self._dice.randint(1, 4))).tasks:
            book, step = self._tasks[task.task_id]
            assert task.step == step.index
            book.claimed(step, task.fence, self._now)
            results = [one.result for one in book.steps if one.stage < step.stage]
            assert [found["data"] for found in task.parameters["context"].values()] == results
            self._held[task.task_id] = worker

    def _running(self) -> str | None:
        chosen = [task for task, (_, step) in self._tasks.items() if step.state is State.EXECUTING]
        return self._dice.choice(chosen) if chosen else None

    async def complete(self) -> None:
        if task := self._running():
            book, step = self._tasks[task]
            result = self._dice.randrange(1000)
            # an answer may be lost: the second report changes nothing
            for _ in range(self._dice.choice((1, 1, 2))):
                report = Completed(task, step.fence, result)
                assert await self._store.complete(self._held[task], report) == [State.COMPLETED]
            book.completed(step, result, self._now)

    async def fail(self) -> None:
        if task := self._running():
            book, step = self._tasks[task]
            retriable = self._dice.random() < 0.7
            report = Failed(task, step.fence, "oops", "it broke", retriable, RETRY_MS, 0)
            (state,) = await self._store.fail(self._held[task], report)
            book.failed(step, retriable, self._now)
            assert state is step.state

    async def release(self) -> None:
        if task := self._running():
            book, step = self._tasks[task]
            await self._store.release(self._held[task], Grant(task, step.fence))
            book.released(step)

    async def report_late(self) -> None:
        """Of a run that was lost, cancelled, failed or given back: nothing happens."""
        late = [
            task
            for task, (_, step) in self._tasks.items()
            if step.fence and step.state not in (State.EXECUTING, State.COMPLETED)
        ]
        if late:
            task = self._dice.choice(late)
            report = Completed(task, self._tasks[task][1].fence, "late")
            (found,) = await self._store.complete(self._held[task], report)
            assert isinstance(found, errors.Fenced)

    async def lose_worker(self) -> None:
        worker = self._dice.choice(WORKERS)
        held = {known.worker_id: known.running for known in (await self._store.stats()).workers}
        await self._store.expire(worker)
        await self._register()
        for task, (book, step) in self._tasks.items():
            if step.state is State.EXECUTING and self._held[task] == worker:
                book.lost_worker(step, alone=held[worker] == 1)

    async def cancel(self) -> None:
        job_id = self._dice.choice(list(self._books))
        book = self._books[job_id]
        open_tasks = [
            task for task, (of, step) in self._tasks.items() if of is book and step in book.open_steps
        ]
        by_step = open_tasks and self._dice.random() < 0.5
        try:
            await (
                self._store.cancel(self._dice.choice(open_tasks))
                if by_step
                else self._store.jobs.cancel(job_id)
            )
        except errors.AlreadyFinished:
            assert book.status in (JobStatus.COMPLETED, JobStatus.FAILED)
        else:
            assert book.status not in (JobStatus.COMPLETED, JobStatus.FAILED)
            if book.status is not JobStatus.CANCELLED:
                book.cancelled()

    async def resume(self) -> None:
        failed = [one for one, book in self._books.items() if book.status is JobStatus.FAILED]
        job_id = self._dice.choice(failed or list(self._books))
        book, force = self._books[job_id], self._dice.random() < 0.5
        can_be = book.status is JobStatus.FAILED and book.error and (book.error[1] or force)
        try:
            await self._store.jobs.resume(job_id, force=force)
        except errors.NotResumable:
            assert not can_be
        else:
            assert can_be
            self._resumed(book, "resumed")

    async def replay(self) -> None:
        """A failed step: its whole job is resumed, once it has failed too."""
        failed = [task for task, (_, step) in self._tasks.items() if step.state in REPLAYABLE]
        if not failed:
            return
        task = self._dice.choice(failed)
        book, _ = self._tasks[task]
        try:
            queued = await self._store.replay(task)
        except errors.StepOfJob:
            assert book.status is not JobStatus.FAILED
        else:
            assert book.status is JobStatus.FAILED
            self._resumed(book, "replayed")
            assert [self._tasks[one][1] for one in queued] == book.open_steps

    def _resumed(self, book: Book, how: str) -> None:
        assert book.error
        code, retryable, _ = book.error
        self.seen.update([how, f"after {code}", "as it was" if retryable else "by force"])
        book.resumed(self._now)

    async def time_passes(self) -> None:
        self._now += self._dice.choice((1, 5_000, 5_000, 22_000, 31_000, 70_000, 130_000))
        await self._register()
        await self._store.expire()

    async def _register(self) -> None:
        for worker in WORKERS:
            await self._store.workers.register(worker, capacity=4)

    async def _compare(self) -> None:
        for job_id, book in self._books.items():
            job = await self._store.jobs.get(job_id)
            error = job.error and (job.error.code, job.error.retryable, job.error.step)
            assert (job.status, job.current_step_index, error) == (book.status, book.current_step, book.error)
            assert int(job.priority) == book.effective
            for known, step in zip(job.steps, book.steps, strict=True):
                assert known.attempts == step.attempts
                assert known.status == (step.state or PENDING)
                assert (known.result and known.result["data"]) == step.result
            assert (book.status in ENDED) == (not book.open_steps)
        await self._compare_tasks()
        breaches = await examine(self._store.connection, now_ms=self._now, twice=False)
        assert not breaches, breaches

    async def _compare_tasks(self) -> None:
        keys, pipeline = (
            self._store.connection.keys,
            self._store.connection.client.pipeline(transaction=False),
        )
        for task in self._tasks:
            pipeline.hget(keys.key("task", task), "state")
        for state, (_, step) in zip(await pipeline.execute(), self._tasks.values(), strict=True):
            assert (state and state.decode()) == step.state
