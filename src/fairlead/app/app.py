"""The Python front: `Fairlead`, `@fl.task`, submitting, limits, pipelines, and a worker in this process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack, cast, overload

from fairlead.app.files import Files
from fairlead.app.function import Decorator, TaskFunction, handler_of
from fairlead.app.handle import JobHandle, TaskHandle
from fairlead.app.many import NotAllSubmitted, submit_all
from fairlead.app.options import (
    OPTIONS,
    CronOptions,
    JobOptions,
    Options,
    TypeOptions,
    check_known,
    new_job,
    new_task,
)
from fairlead.backend import Backend
from fairlead.checks import check_name, check_seconds, check_units
from fairlead.client.job_backend import jobs_of
from fairlead.client.opening import joined_backend
from fairlead.client.target import Target
from fairlead.cron import Cron, Missed
from fairlead.errors import FairleadError, InvalidInput
from fairlead.lease_guard import LeaseGuard
from fairlead.model.forecast import Forecast
from fairlead.model.job import JobFilter, JobPage, SubmittedJob
from fairlead.model.limit import Lease
from fairlead.model.task import NewTask, Submitted, TaskPage
from fairlead.model.task_filter import TaskFilter
from fairlead.pipeline.pipelines import Step, stages_of
from fairlead.settings import LimitSettings, PriorityName, Rate, Slots
from fairlead.settings.loading import DEFAULT_FILE
from fairlead.settings.pipelines import Stages
from fairlead.store.store import Store
from fairlead.worker.context import current_backend
from fairlead.worker.handler import Handler
from fairlead.worker.options import GRACE_SECONDS, WorkerOptions
from fairlead.worker.running import running_worker
from fairlead.worker.worker import Worker

#: Options that `cron` means for the type as a whole, also those that a submit has too.
OF_TYPES = TypeOptions.__annotations__.keys()


class Fairlead(Files):
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
        self.served: list[Backend] = []  # of the namespaces whose tasks its handlers run

    @property
    def backend(self) -> Backend:
        """The store itself, or the gateway in front of it. In a handler: of the namespace of its task."""
        current = current_backend.get()
        if backend := current if current in self.served else self._backend:
            return backend
        raise FairleadError("Fairlead is not connected: do this inside `async with fl:`.")

    @property
    def store(self) -> Store:
        if not isinstance(self.backend, Store):
            raise FairleadError("The store is behind a gateway here: what it can do for you is `fl.backend`.")
        return self.backend

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise FairleadError("Fairlead is connected already: use `async with fl:` only once.")
        joined = joined_backend(self.target.read_settings(), self, waits=self.waits_for_data)
        stack = AsyncExitStack()
        self._backend, self._opened = await stack.enter_async_context(joined), stack
        return self

    async def declare(self, backend: Backend) -> None:
        """Declares what this app is made of. Without a gateway it opens the namespace first."""
        has_file = self.target.config is not None or Path(DEFAULT_FILE).is_file()
        await backend.open(govern=False)
        types = {name: handler.settings for name, handler in self.handlers.items()}
        if has_file:  # each may name limits of the other: those of the code, then the file, then the types
            await backend.declare("code", {}, self.limits)
            await backend.open(govern=False, declare=True)
        await backend.declare("code", types, self.limits, self.pipelines)

    async def confirm(self, backend: Backend) -> bool:
        """Keeps what it has declared from being forgotten; false: some of it is not known any more."""
        return await backend.confirm(self.handlers, self.pipelines)

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

        `burst`: how many units of a rate may be taken at once, by default a tenth of the rate.
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

    @property
    def task(self) -> Decorator:
        """Makes a task of a function, by its own name unless another is given.

        `max_concurrent`: a limit named like the task. `run_in`: "loop" (the default of `async def`),
        "thread" (the default of `def`), or "process" for CPU work and for what must be killable.
        """
        return Decorator(self._make)

    def cron(
        self,
        expression: str,
        *,
        timezone: str = "UTC",
        missed: Missed = "last",
        name: str | None = None,
        **options: Unpack[CronOptions],
    ) -> Decorator:
        """Submits the function as a task at every tick, once over all processes that run workers for it.

        A parameter named `tick` receives the time of the tick; `parameters` are the others. `options`: those
        of `task`, and those of a submit.
        """
        check_known(options, OPTIONS | CronOptions.__annotations__.keys())
        of_type = cast(TypeOptions, {one: value for one, value in options.items() if one in OF_TYPES})
        wishes = {one: value for one, value in options.items() if one not in OF_TYPES}

        def decorate(function: Callable[..., Any]) -> TaskFunction[..., ..., Any, Any]:
            task = function if isinstance(function, TaskFunction) else None
            if task and of_type:
                raise InvalidInput("options", f"give {', '.join(of_type)} to `@fl.task` instead")
            handler = task.handler if task else handler_of(function, None, of_type)
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
            # only now: a mistake above registers nothing
            task = task or self._add(handler, of_type.get("max_concurrent"))
            self.crons.append(cron)
            return task

        return Decorator(decorate)

    async def submit(
        self, task_type: str, parameters: Mapping[str, Any] | None = None, **options: Unpack[Options]
    ) -> TaskHandle[Any]:
        """Submits a task by the name of its type; this process need not have its function."""
        return await self.submit_new(new_task(task_type, parameters or {}, options))

    async def submit_new(self, task: NewTask) -> TaskHandle[Any]:
        return TaskHandle(self.backend, await self.backend.submit_one(task))

    @overload
    async def submit_many(self, tasks: Iterable[NewTask]) -> list[TaskHandle[Any]]: ...
    @overload
    async def submit_many(
        self, tasks: Iterable[NewTask], *, return_errors: bool
    ) -> list[TaskHandle[Any] | FairleadError]: ...
    async def submit_many(
        self, tasks: Iterable[NewTask], *, return_errors: bool = False
    ) -> Sequence[TaskHandle[Any] | FairleadError]:
        """Many at once, made by `function.new(...)`; the handles are in the same order.

        All of them are tried. If some are refused, NotAllSubmitted has their errors and the handles of the
        others; with `return_errors`, an error takes the place of its handle.
        """
        wanted = list(tasks)  # all of them first: if one cannot be made, none is submitted
        answers = await submit_all(self.backend, wanted)
        if not return_errors and any(isinstance(one, FairleadError) for one in answers):
            raise NotAllSubmitted(answers)
        return answers

    async def get(self, task_id: str) -> TaskHandle[Any]:
        """A task that was submitted before, by this process or another."""
        task = await self.backend.get(task_id)
        return TaskHandle(self.backend, Submitted(task.task_id, task.status))

    async def list_tasks(self, **wanted: Unpack[TaskFilter]) -> TaskPage:
        """A page of the tasks that match, newest first. `next_cursor` is the `cursor` of the next page."""
        check_known(wanted, TaskFilter.__annotations__)
        return await self.backend.list_tasks(**wanted)

    async def forecast(
        self, limits: Sequence[str] = (), *, seconds: float = 600, follow: str | None = None
    ) -> Forecast:
        """Who holds each limit until when, and who is expected to start next within `seconds`.

        Of these limits, or of those with the longest waits. `follow`: the id of a task or a job, which is
        followed through all its limits.
        """
        return await self.backend.forecast(limits, seconds=seconds, follow=follow)

    def pipeline(self, name: str, steps: Sequence[Step | Sequence[Step]]) -> None:
        """Declares a pipeline: services and tasks by name, decorated functions, and lists (or `Parallel`) of
        those that run beside each other."""
        stages = stages_of(name, steps)
        if name in self.pipelines:
            raise InvalidInput("pipeline", f"there are two named {name!r}: rename one of them")
        self.pipelines[name] = stages

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
        jobs = jobs_of(self.backend)
        return JobHandle(jobs, SubmittedJob(job_id, (await jobs.get(job_id)).status))

    async def list_jobs(self, **wanted: Unpack[JobFilter]) -> JobPage:
        """A page of the jobs that match, newest first. `next_cursor` is the `cursor` of the next page."""
        check_known(wanted, JobFilter.__annotations__)
        return await jobs_of(self.backend).page(**wanted)

    def acquire(
        self,
        limit: str,
        *,
        units: int = 1,
        wait: float = 0,
        lease_seconds: float = 30,
        holder: str = "",
        priority: PriorityName = "medium",
        user_id: str | None = None,
    ) -> LeaseGuard[Lease]:
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
        return LeaseGuard(self.backend.limits, acquire, lease_ms, limit)

    def worker(
        self,
        *,
        capacity: int | None = None,
        reserve: int | None = None,
        capabilities: Iterable[str] = (),
        name: str = "",
        grace: float = GRACE_SECONDS,
    ) -> AbstractAsyncContextManager[Worker]:
        """A worker in this process, while the block runs. None: as the settings say.

        `fairlead worker` is sturdier: another process keeps the leases even when a handler blocks this one.
        """
        options = WorkerOptions(
            capacity=capacity, reserve=reserve, capabilities=tuple(capabilities), name=name, grace=grace
        )
        declare = partial(self.declare, self.backend)
        return running_worker(self.backend, self.handlers, self.crons, options, declare)

    def _make(
        self, function: Callable[..., Any], task_type: str | None = None, **options: Unpack[TypeOptions]
    ) -> TaskFunction[..., ..., Any, Any]:
        return self._add(handler_of(function, task_type, options), options.get("max_concurrent"))

    def _add(self, handler: Handler, max_concurrent: int | None) -> TaskFunction[..., ..., Any, Any]:
        name = handler.task_type
        if name in self.handlers:
            raise InvalidInput("task", f"there are two tasks named {name!r}: rename one of them")
        if max_concurrent is not None:
            self.limit(name, max_concurrent)
        self.handlers[name] = handler
        return TaskFunction(self, handler)
