"""The polls under way, and the return of tasks that no client has received."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager

from fairlead.background import TaskSet, cancel_all
from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.model.reports import Claimed, Grant
from fairlead.store.store import Store

PAUSES = (0.1, 0.5, 2.0)  # seconds between attempts to reach the store
CLOSE_SECONDS = 2.0  # for what is under way when the gateway ends

log = EventLog("fairlead.api")


class Polls(AbstractAsyncContextManager["Polls"]):
    """The polls of one gateway. `async with Polls(store) as polls:`

    Over HTTP nobody confirms a poll. A task that no client has received must not wait for the end of its
    lease: the worker's heartbeats renew it, so it would last until the task's deadline.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, list[asyncio.Event]] = {}  # by worker
        self._unanswered: dict[str, str] = {}  # worker -> its last claim whose answer nobody saw
        self._returning = TaskSet()

    async def __aexit__(self, *_: object) -> None:
        returning = set(self._returning)
        if returning:
            await asyncio.wait(returning, timeout=CLOSE_SECONDS)
        await cancel_all(*returning)

    @contextlib.contextmanager
    def waiting(self, worker: str) -> Iterator[asyncio.Event]:
        """Registers a poll; the event is set when it should claim again."""
        claim_again = asyncio.Event()
        polls = self._waiting.setdefault(worker, [])
        polls.append(claim_again)
        try:
            yield claim_again
        finally:
            polls.remove(claim_again)
            if not polls:
                del self._waiting[worker]
            self._wake(worker)

    def has_others(self, worker: str) -> bool:
        return len(self._waiting[worker]) > 1

    def _wake(self, worker: str) -> None:
        """In the store a worker waits once for all its polls, and each claim ends that."""
        for claim_again in self._waiting.get(worker, ()):
            claim_again.set()

    def give_back(self, worker: str, grants: Sequence[Grant]) -> None:
        """Returns tasks that nobody runs to their place in the queue."""
        self._returning.start(_until_answered(worker, lambda: self._release(worker, grants)))

    def recover(self, worker: str, request: str) -> None:
        """Gives back what a claim got whose answer nobody saw."""
        is_under_way = worker in self._unanswered
        self._unanswered[worker] = request  # the store remembers no other
        if not is_under_way:
            task = self._returning.start(_until_answered(worker, lambda: self._recover(worker)))
            task.add_done_callback(lambda _: self._unanswered.pop(worker, None))

    async def _release(self, worker: str, grants: Sequence[Grant]) -> None:
        if grants:
            await self._store.release(worker, *grants)
        self._wake(worker)

    async def _recover(self, worker: str) -> None:
        recovered = ""
        while (request := self._unanswered[worker]) != recovered:
            # This claims nothing new. If it overtakes the other claim, that one gets nothing either.
            claimed = await self._store.claim(worker, 0, request=request)
            await self._release(worker, grants_of(claimed))
            recovered = request


def new_request() -> str:
    """A request id that no client uses: theirs begin with a letter."""
    return "." + secrets.token_hex(8)


def grants_of(claimed: Claimed) -> list[Grant]:
    return [Grant(task.task_id, task.fence) for task in claimed.tasks]


async def _until_answered(worker: str, act: Callable[[], Awaitable[None]]) -> None:
    """Retries while the store is unavailable; in the end the leases expire."""
    for pause in (0, *PAUSES):
        await asyncio.sleep(pause)
        try:
            await act()
            return
        except StoreUnavailable as away:
            problem: FairleadError = away
        except FairleadError as refused:
            problem = refused
            break
    log.warning("tasks_not_given_back", worker=worker, problem=str(problem))
