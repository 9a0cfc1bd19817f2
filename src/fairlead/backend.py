"""The way in, as the front, the command line and workers use it: the store itself, or a gateway over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack

from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.model.audit import AuditPage
from fairlead.model.blob import BlobRef, LocalFile
from fairlead.model.cron import CronStatus
from fairlead.model.dead_letter import ALL_DEAD, DeadFilter
from fairlead.model.declarations import Origin
from fairlead.model.event import Event
from fairlead.model.explanation import Explanation
from fairlead.model.forecast import Forecast
from fairlead.model.limit import Lease, Limit
from fairlead.model.policy import PolicyValue
from fairlead.model.reports import Claimed, Completed, Failed, Frame, Grant, Handed, Output, Progress
from fairlead.model.states import State
from fairlead.model.stats import Stats
from fairlead.model.task import NewTask, Submitted, Task, TaskPage
from fairlead.model.task_filter import TaskFilter
from fairlead.model.task_history import TaskHistory
from fairlead.model.worker import Beat, LostWorker
from fairlead.settings import LimitSettings, Rate, Settings, Slots, TaskSettings
from fairlead.settings.pipelines import Stages

PAUSE = 0.25  # seconds between two looks when the store does not answer

T = TypeVar("T")


class Reopens(Protocol):
    def reopen(self) -> Awaitable[None]:
        """A way back after StoreUnavailable."""


async def retry_while_unavailable(backend: Reopens, look: Callable[[], Awaitable[T]]) -> T:
    """The store may be away for a while: whoever waits for news waits for that too."""
    while True:
        try:
            return await look()
        except StoreUnavailable:
            await asyncio.sleep(PAUSE)
            with contextlib.suppress(FairleadError):  # the next look raises it
                await backend.reopen()


class LimitsBackend(Protocol):
    async def set(
        self, name: str, wanted: Slots | Rate, *, tenant: str | None = None, shared: bool | None = None
    ) -> None: ...

    async def pause(self, name: str, paused: bool = True, *, tenant: str | None = None) -> None: ...

    async def delete(self, name: str, *, tenant: str | None = None) -> None: ...

    async def all(self, *, tenant: str | None = None) -> list[Limit]: ...

    async def get(self, name: str, lease_id: str | None = None, *, tenant: str | None = None) -> Limit: ...

    async def acquire(
        self,
        name: str,
        *,
        units: int = 1,
        lease_ms: int = 30_000,
        holder: str = "",
        lease_id: str | None = None,
        wait_seconds: float = 0,
        priority: str = "medium",
        user_id: str | None = None,
    ) -> Lease: ...

    async def renew(self, lease: Lease, lease_ms: int = 30_000) -> Lease: ...

    async def release(self, lease: Lease) -> None: ...

    async def force_release(self, name: str, lease_id: str, *, tenant: str | None = None) -> None: ...


class WorkersBackend(Protocol):
    async def register(
        self,
        worker: str,
        *,
        capabilities: Iterable[str] = (),
        task_types: Iterable[str] | None = None,
        capacity: int = 1,
        reserve: int = 0,
        name: str = "",
        version: str = "",
    ) -> None: ...

    async def heartbeat(self, worker: str, *, draining: bool = False, lease_ms: int = 30_000) -> Beat: ...

    async def stall(self, worker: str, request: str, begun: Collection[int]) -> list[Grant]: ...

    async def wait(self, worker: str, seconds: float) -> str | Handed | None: ...

    async def drain(self, worker: str) -> None: ...

    async def leave(self, worker: str) -> None: ...


class CronsBackend(Protocol):
    async def all(self) -> list[CronStatus]: ...

    async def last(self, name: str, schedule: str = "", timezone: str = "UTC") -> tuple[int, int]: ...

    async def tick(self, name: str, previous: int, tick: int, task: NewTask) -> Submitted | None: ...


class DeadLettersBackend(Protocol):
    async def page(self, limit: int = 100, cursor: str = "", wanted: DeadFilter = ALL_DEAD) -> TaskPage: ...

    async def get(self, task_id: str) -> Task: ...


class AuditBackend(Protocol):
    async def page(self, count: int = 100, cursor: str = "") -> AuditPage: ...

    async def verify(self) -> list[str]: ...


class LiveBackend(Protocol):
    def watch(self, task_id: str) -> AbstractAsyncContextManager[AsyncIterator[Event | None]]: ...


class BlobsBackend(Protocol):
    async def put(
        self,
        source: Path | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
        tenant: str | None = None,
        task: Task | None = None,
    ) -> BlobRef: ...

    async def fetch(
        self, ref: BlobRef, *, tenant: str | None = None, task: Task | None = None
    ) -> LocalFile: ...


class UpkeepBackend(Protocol):
    async def bury(self) -> list[LostWorker]: ...

    async def inspect(self) -> object: ...

    async def forget(self) -> int: ...

    async def tidy_blobs(self) -> int: ...


class PolicyBackend(Protocol):
    async def values(self) -> list[PolicyValue]: ...


class Backend(Reopens, Protocol):
    @property
    def settings(self) -> Settings: ...

    @property
    def limits(self) -> LimitsBackend: ...

    @property
    def workers(self) -> WorkersBackend: ...

    @property
    def crons(self) -> CronsBackend: ...

    @property
    def dead_letters(self) -> DeadLettersBackend: ...

    @property
    def audit(self) -> AuditBackend: ...

    @property
    def blobs(self) -> BlobsBackend: ...

    @property
    def live(self) -> LiveBackend: ...

    @property
    def upkeep(self) -> UpkeepBackend | None:
        """None: a gateway does its own upkeep."""

    @property
    def policy(self) -> PolicyBackend: ...

    async def open(self, *, govern: bool = True, declare: bool | None = None) -> None: ...

    def rejoin(self) -> Awaitable[object]:
        """What is to be done after StoreLost."""

    async def declare(
        self,
        origin: Origin,
        types: Mapping[str, TaskSettings],
        limits: Mapping[str, LimitSettings],
        pipelines: Mapping[str, Stages] | None = None,
    ) -> None: ...

    async def confirm(self, types: Iterable[str], pipelines: Iterable[str]) -> bool: ...

    async def submit(self, *tasks: NewTask) -> list[Submitted | FairleadError]: ...

    async def submit_one(self, task: NewTask) -> Submitted: ...

    async def get(self, task_id: str) -> Task: ...

    async def explain(self, task_id: str) -> Explanation: ...

    async def history(self, task_id: str) -> TaskHistory: ...

    async def outputs(self, task_id: str, after: int = 0) -> list[Output]: ...

    async def cancel(self, task_id: str) -> str | None: ...

    async def list_tasks(self, **wanted: Unpack[TaskFilter]) -> TaskPage: ...

    async def replay(self, task_id: str, parameters: Mapping[str, Any] | None = None) -> list[str]: ...

    async def purge(self, task_id: str) -> None: ...

    async def task_types(self) -> dict[str, int | None]: ...

    async def pause_type(self, task_type: str, paused: bool = True) -> None: ...

    async def stats(self) -> Stats: ...

    async def forecast(
        self, limits: Sequence[str] = (), *, seconds: float = 600, follow: str | None = None
    ) -> Forecast: ...

    async def report(
        self,
        worker: str,
        completed: Sequence[Completed] = (),
        failed: Sequence[Failed] = (),
        *,
        claim: int = 0,
        idle: bool = False,
        request: str = "",
        acknowledged: Iterable[int] | None = None,
    ) -> tuple[list[State | FairleadError], Claimed]: ...

    async def fail(self, worker: str, *reports: Failed) -> list[State | FairleadError]: ...

    async def release(self, worker: str, *grants: Grant) -> list[State | FairleadError]: ...

    async def progress(self, worker: str, *reports: Progress) -> list[FairleadError | None]: ...

    async def shortened(self, worker: str, *grants: Grant) -> list[FairleadError | None]: ...

    async def send_frame(self, task_id: str, frame: Any) -> int: ...

    async def take_frames(self, worker: str, grant: Grant, after: int = 0) -> list[Frame]: ...

    async def extend(self, worker: str, grant: Grant, ms: int) -> int: ...

    async def expire(self, worker: str) -> int: ...
