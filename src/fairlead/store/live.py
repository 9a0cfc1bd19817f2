"""Live events: those of every act, for everybody who watches."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from fairlead.model.estimate import Estimate
from fairlead.model.event import Event, StepOf
from fairlead.model.job import JobStatus
from fairlead.model.priority import Priority
from fairlead.model.states import WAITING, State
from fairlead.store.keys import CHANNEL
from fairlead.store.queries import Queries
from fairlead.store.records import JobRow, Row, rows_of
from fairlead.store.subscription import Listener
from fairlead.store.waits import Waits

MOST_WAITING = 1_000  # events a slow watcher may have unread
MOST_BYTES = 1 << 20  # of their details


class Watcher:
    """The events of a task, a job, or of all; `None` where some may be missing: look at the state."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._expected: set[str] = set()  # tasks of which it wants to know when the estimate moves
        self._estimates: dict[str, Event] = {}  # the latest of each, unread
        self._waiting: deque[tuple[Event | None, int]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._ended = False

    def expect(self, task_id: str, known: Estimate | None = None) -> None:
        """The task waits: an event of the act `estimate` follows whenever its estimate moves from this."""
        self._estimates.pop(task_id, None)
        self._expected.add(task_id)
        self._waits.expect(task_id, self._tell, known)

    def _tell(self, task_id: str, estimate: Estimate) -> None:
        detail = {"p50_seconds": estimate.p50_seconds, "p90_seconds": estimate.p90_seconds}
        waits = State.QUEUED
        self._estimates[task_id] = Event(task_id, "estimate", waits, waits, estimate.at, 0, detail)
        self._news.set()

    def _forget_all(self) -> None:
        for task_id in tuple(self._expected):
            self._forget(task_id)

    def _forget(self, task_id: str) -> None:
        """The task does not wait any more."""
        if task_id in self._expected:
            self._expected.discard(task_id)
            self._estimates.pop(task_id, None)
            self._waits.forget(task_id, self._tell)

    def put(self, event: Event | None, size: int = 0) -> None:
        if len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES:
            self._waiting.clear()  # it is too slow: one look at the state replaces all of these
            self._bytes = 0
            event, size = None, 0
        self._waiting.append((event, size))
        self._bytes += size
        self._news.set()

    def end(self) -> None:
        self._forget_all()
        self._ended = True
        self._news.set()

    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> Event | None:
        while not self._waiting:
            if self._estimates:
                return self._estimates.pop(next(iter(self._estimates)))
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        event, size = self._waiting.popleft()
        self._bytes -= size
        if event is None:  # whatever waits is read again
            self._forget_all()
        elif event.after not in WAITING:
            self._forget(event.task_id)
        return event


class Live:
    """One subscription for all watchers; it is there as long as somebody watches."""

    def __init__(self, queries: Queries) -> None:
        connection = queries.connection
        self._waits = Waits(queries)
        self._watchers: dict[str | None, set[Watcher]] = {}  # by task or job; None: of all tasks
        channel = connection.keys.key(CHANNEL)
        self._listener = Listener(connection.subscriber, channel, self._deliver, self._turned)

    @contextlib.asynccontextmanager
    async def watch(self, task_id: str | None = None) -> AsyncIterator[Watcher]:
        """The events from now on, of one task, of the steps of one job, or of all.

        `None` comes first, when nothing can be missed any more, and after every gap: the subscription was
        lost for a while, or too much was left unread. Only the state shows what happened before it.
        """
        watcher = Watcher(self._waits)
        self._watchers.setdefault(task_id, set()).add(watcher)
        if self._listener.subscribed:
            watcher.put(None)
        self._listener.start()
        try:
            yield watcher
        finally:
            self._watchers[task_id].discard(watcher)
            if not self._watchers[task_id]:
                del self._watchers[task_id]
            watcher.end()
            await self._waits.rest()
            if not self._watchers:
                await self._listener.stop()

    async def close(self) -> None:
        """Ends every watch."""
        for watcher in self._all():
            watcher.end()
        await self._waits.rest()
        await self._listener.stop()

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._watchers.values() for watcher in watchers]

    def _turned(self) -> None:
        if self._listener.subscribed:
            self._gap()

    def _deliver(self, message: bytes) -> None:
        try:
            for row in rows_of(message):
                names = (row.task, row.job.id, None) if isinstance(row.job, JobRow) else (row.task, None)
                interested = [watcher for name in names for watcher in self._watchers.get(name, ())]
                event = _event(row) if interested else None
                for watcher in interested:
                    watcher.put(event, len(row.packed_detail))
        except ValueError:  # of a newer Fairlead, say: the state has the news too
            self._gap()

    def _gap(self) -> None:
        for watcher in self._all():
            watcher.put(None)


def _event(row: Row) -> Event:
    before, step = State(row.before) if row.before else None, None
    if isinstance(job := row.job, JobRow):
        step = StepOf(job.id, job.seq, job.step, JobStatus(job.status), Priority(job.priority))
    return Event(row.task, row.act, before, State(row.after), row.at, row.fence, row.detail, row.seq, step)
