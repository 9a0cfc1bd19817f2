"""The Python front: `Fairlead`, `@fl.task`, submitting, limits, pipelines, and a worker in this process."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from fairlead.app.acquire import LeaseGuard
from fairlead.app.function import OPTIONS, Decorator, JobOptions, TaskFunction, new_job, new_task
from fairlead.app.handle import TaskHandle
from fairlead.app.job_handle import JobHandle
from fairlead.backend import Backend
from fairlead.checks import check_name, check_seconds, check_units
from fairlead.client.job_backend import jobs_of
from fairlead.client.opening import joined_backend
from fairlead.client.target import Target
from fairlead.cron import Cron, Missed
from fairlead.errors import FairleadError, InvalidInput
from fairlead.model.task import MOST_PER_CALL, NewTask, Submitted
from fairlead.pipeline.pipelines import Pipeline, Step
from fairlead.settings import LimitSettings, Rate, Slots, TaskSettings
from fairlead.settings.loading import DEFAULT_FILE
from fairlead.settings.pipelines import Stages
from fairlead.store.store import Store
from fairlead.worker.handler import Handler, RunIn, place_for
from fairlead.worker.options import WorkerOptions
from fairlead.worker.running import running_worker
from fairlead.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

PER_CALL = 200  # tasks of many: as many as one act of the store takes

#: Options that a submit has too, but that `task` and `cron` mean for the type as a whole.
OF_TYPES = ("limits", "max_retries", "required_capabilities")


class Fairlead:
    """One namespace on one server: embedded (no URL), shared (`redis://...`), or behind a gateway (`http://...`).

    Tasks and limits are declared at import time; `async with fl:` connects.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        data: str | Path | None = None,
        namespace: str = "default",
        key: str | None = None,
        config: str | Path | None = None,
    ) -> None:
        self.handlers: dict[str, Handler] = {}
        self.crons: list[Cron] = []
        self.limits: dict[str, LimitSettings] = {}
        self.pipelines: dict[str, Stages] = {}
        self.waits_for_data = False  # when the store has lost its data: wait until it is opened again
        self.target = Target(
            url=url,
            data=str(data) if data else None,
            namespace=None if namespace == "default" else namespace,
            config=str(config) if config else None,
            key=key,
        )
        self._opened: AsyncExitStack | None = None
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """The store itself, or the gateway in front of it."""
        if self._backend is None:
            raise FairleadError("Fairlead is not connected: do this inside `async with fl:`.")
        return self._backend

    @property
    def store(self) -> Store:
        if not isinstance(self.backend, Store):
            raise FairleadError("The store is behind a gateway here: what it can do for you is `fl.backend`.")
        return self.backend

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise FairleadError("Fairlead is connected already: use `async with fl:` only once.")
        joined = joined_backend(self.target.read_settings(), self.declare, waits=self.waits_for_data)
        stack = AsyncExitStack()
        self._backend, self._opened = await stack.enter_async_context(joined), stack
        return self

    async def declare(self, backend: Backend) -> None:
        """Declares what this app is made of. Without a gateway it opens the namespace first."""
        # without a settings file an app only joins: the policy of the namespace is kept
        govern = self.target.config is not None or Path(DEFAULT_FILE).is_file()
        await backend.open(govern=False)
        types = {name: handler.settings for name, handler in self.handlers.items()}
        await backend.declare("code", types, self.limits, self.pipelines)
        if govern:  # after the code: the file may name limits that the code defines
            await backend.open()

    async def __aexit__(self, *_: object) -> None:
        opened, self._opened, self._backend = self._opened, None, None
        if opened:
            await opened.aclose()

    def limit(
        self,
        name: str,
        limit: int | None = None,
        *,
        rate: str | None = None,
        burst: int | None = None,
        shared: bool = False,
    ) -> None:
        """Declares a limit: a number of slots, or a rate such as "60/min". `shared`: all tenants may name it.

        It is set when the declaration is new or has changed; otherwise an operator's own setting is kept.
        """
        check_name("name", name)
        if (limit is None) == (rate is None):
            raise InvalidInput(name, "give a number of slots, or rate=")
        if rate is None:
            assert limit is not None
            self.limits[name] = Slots(limit=limit, shared=shared)
            return
        if burst is not None:
            check_units("burst", burst)
        try:
            self.limits[name] = Rate.of(rate, burst, shared=shared)
        except ValueError as problem:
            raise InvalidInput("rate", str(problem)) from None

    @overload
    def task(self, function: Callable[P, Awaitable[R]], /) -> TaskFunction[P, Awaitable[R], R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> TaskFunction[P, R, R]: ...
    @overload
    def task(
        self,
        task_type: str | None = None,
        /,
        *,
        limits: Mapping[str, int] | None = None,
        max_concurrent: int | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        required_capabilities: Sequence[str] = (),
        run_in: RunIn | None = None,
    ) -> Decorator: ...

    def task(self, subject: Any = None, /, **options: Any) -> Any:
        """Makes a task of a function, by its own name unless another is given.

        `max_concurrent`: a limit named like the task. `run_in`: "loop" (the default of `async def`),
        "thread" (the default of `def`), or "process" for CPU work and for what must be killable.
        """
        if callable(subject):
            return self._make(subject, None)
        return lambda function: self._make(function, subject, **options)

    def cron(
        self,
        expression: str,
        *,
        timezone: str = "UTC",
        missed: Missed = "last",
        name: str | None = None,
        **options: Any,
    ) -> Decorator:
        """Submits the function as a task at every tick, once over all processes that run workers for it.

        A parameter named `tick` receives the time of the tick; `parameters` are the others. `options`: those
        of `task`, and those of a submit.
        """
        of_submits = {*OPTIONS, "parameters"}.difference(OF_TYPES)
        wishes = {one: options.pop(one) for one in of_submits & options.keys()}

        def decorate(function: Any) -> Any:
            if isinstance(function, TaskFunction) and options:
                raise InvalidInput("options", f"give {', '.join(options)} to `@fl.task` instead")
            made = function if isinstance(function, TaskFunction) else self._make(function, None, **options)
            handler = made.handler
            cron = Cron(
                name=name or handler.task_type,
                expression=expression,
                task_type=handler.task_type,
                timezone=timezone,
                missed=missed,
                wishes=wishes,
                tick_parameter="tick" if "tick" in handler.parameters.names else None,
            )
            handler.parameters.checked(cron.new_task(0).parameters)  # better now than at every tick
            self.crons.append(cron)
            return made

        return decorate

    async def submit(
        self, task_type: str, parameters: Mapping[str, Any] | None = None, **options: Any
    ) -> TaskHandle[Any]:
        """Submits a task by the name of its type; this process need not have its function."""
        return await self.submit_new(new_task(task_type, parameters or {}, options))

    async def submit_new(self, task: NewTask) -> TaskHandle[Any]:
        return TaskHandle(self.backend, await self.backend.submit_one(task))

    async def submit_many(self, tasks: Iterable[NewTask]) -> list[TaskHandle[Any] | FairleadError]:
        """Many at once, made by `function.new(...)`. In order; for a refused one, its error."""
        wanted = list(tasks)  # all of them first: if one cannot be made, none is submitted
        # The store answers calls in order, so the next is made ready while it works on this one; a gateway
        # may take two calls in any order.
        is_gateway = self.backend.settings.engine.is_gateway
        size, most_under_way = (MOST_PER_CALL, 1) if is_gateway else (PER_CALL, 2)
        answers: list[Submitted | FairleadError] = []
        under_way: deque[asyncio.Task[list[Submitted | FairleadError]]] = deque()
        try:
            for i in range(0, len(wanted), size):
                under_way.append(asyncio.create_task(self.backend.submit(*wanted[i : i + size])))
                await asyncio.sleep(0)  # it is sent now
                if len(under_way) == most_under_way:
                    answers += await under_way.popleft()
            while under_way:
                answers += await under_way.popleft()
        finally:
            for call in under_way:
                call.cancel()
        return [one if isinstance(one, FairleadError) else TaskHandle(self.backend, one) for one in answers]

    async def get(self, task_id: str) -> TaskHandle[Any]:
        """A task that was submitted before, by this process or another."""
        task = await self.backend.get(task_id)
        return TaskHandle(self.backend, Submitted(task.task_id, task.status))

    def pipeline(self, name: str, steps: Sequence[Step | Sequence[Step]]) -> None:
        """Declares a pipeline: services and tasks by name, decorated functions, and lists (or `Parallel`) of
        those that run beside each other."""
        made = Pipeline.of(name, steps)
        if name in self.pipelines:
            raise InvalidInput("pipeline", f"there are two named {name!r}: rename one of them")
        self.pipelines[name] = made.stages

    async def run(
        self,
        pipeline: str,
        input_data: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Unpack[JobOptions],
    ) -> dict[str, Any]:
        """Submits a job and waits for its end: its context, by `step_<index>_<name>`.

        Raises JobFailed, JobCancelled or TimeoutError (then it continues).
        """
        return await (await self.submit_job(pipeline, input_data, **options)).result(timeout)

    async def submit_job(
        self, pipeline: str, input_data: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> JobHandle:
        """A job, by the name of its pipeline, which this process need not have declared."""
        jobs = jobs_of(self.backend)
        return JobHandle(jobs, await jobs.submit(new_job(pipeline, input_data or {}, options)))

    async def get_job(self, job_id: str) -> JobHandle:
        """A job that was submitted before, by this process or another."""
        return await JobHandle.of(jobs_of(self.backend), job_id)

    def acquire(
        self,
        limit: str,
        *,
        units: int = 1,
        wait: float = 0,
        lease_seconds: float = 30,
        holder: str = "",
        priority: str = "medium",
        user_id: str | None = None,
    ) -> LeaseGuard:
        """Units of a limit without a task; LimitFull when there are none within `wait` seconds.

        A waiting acquire queues with the tasks that need the limit, by priority and fair share.
        """
        check_seconds("wait", wait, zero=True)
        check_seconds("lease_seconds", lease_seconds)
        lease_ms = round(lease_seconds * 1000)
        acquire = partial(
            self.backend.limits.acquire,
            limit,
            units=units,
            lease_ms=lease_ms,
            holder=holder,
            wait_seconds=wait,
            priority=priority,
            user_id=user_id,
        )
        return LeaseGuard(self.backend.limits, acquire, lease_ms)

    def worker(self, **options: Any) -> AbstractAsyncContextManager[Worker]:
        """A worker in this process, while the block runs. Options are those of `WorkerOptions`.

        `fairlead worker` is sturdier: another process keeps the leases even when a handler blocks this one.
        """
        declare = partial(self.declare, self.backend)
        return running_worker(self.backend, self.handlers, self.crons, WorkerOptions(**options), declare)

    def _make(
        self,
        function: Callable[..., Any],
        task_type: str | None,
        *,
        limits: Mapping[str, int] | None = None,
        max_concurrent: int | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        required_capabilities: Sequence[str] = (),
        run_in: RunIn | None = None,
    ) -> TaskFunction[Any, Any, Any]:
        name: str = task_type or getattr(function, "__name__", "") or ""
        needs = dict(limits or {})
        if max_concurrent is not None:
            self.limit(name, max_concurrent)
            needs[name] = 1
        settings = TaskSettings(
            limits=needs,
            required_capabilities=list(required_capabilities),
            timeout_seconds=timeout,
            max_retries=max_retries,
        )
        handler = Handler(name, function, place_for(function, run_in), settings)
        if name in self.handlers:
            raise InvalidInput("task", f"there are two tasks named {name!r}: rename one of them")
        self.handlers[name] = handler
        return TaskFunction(self, handler)
