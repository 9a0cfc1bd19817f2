"""Services as handlers of an ordinary worker: it claims, keeps the lease, times, cancels and drains."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fairlead import tracing
from fairlead.backend import Backend
from fairlead.errors import InvalidInput
from fairlead.pipeline.calling import ServiceClient, ServiceRequest
from fairlead.settings import ServiceSettings, Settings
from fairlead.settings.pipelines import SERVICE
from fairlead.worker.context import Context
from fairlead.worker.handler import Handler
from fairlead.worker.options import GRACE_SECONDS, WorkerOptions
from fairlead.worker.running import running_worker
from fairlead.worker.worker import Worker

MOST_CALLS = 1000  # at once, of one worker process


@asynccontextmanager
async def service_handlers(services: Mapping[str, ServiceSettings]) -> AsyncIterator[dict[str, Handler]]:
    """One for each service; their connections are closed at the end."""
    if not services:
        raise InvalidInput("services", "there are none to call: add [services.NAME] to the settings")
    async with AsyncExitStack() as stack:
        handlers = {}
        for name, service in services.items():
            client = ServiceClient(name, service)
            stack.push_async_callback(client.close)
            handlers[SERVICE + name] = Handler(SERVICE + name, _calling(client), "loop")
        yield handlers


@asynccontextmanager
async def running_services(
    backend: Backend,
    settings: Settings,
    name: str = "services",
    grace: float = GRACE_SECONDS,
    *,
    wait: bool = True,
) -> AsyncIterator[Worker]:
    """A worker in this process that calls the services of the settings, while the block runs."""
    async with service_handlers(settings.services) as handlers:
        capacity = calls_at_once(settings.services)
        options = WorkerOptions(capacity=capacity, reserve=0, name=name, grace=grace)
        async with running_worker(backend, handlers, (), options, wait=wait) as worker:
            yield worker


def calls_at_once(services: Mapping[str, ServiceSettings]) -> int:
    """The limits say how many calls there are; a worker has room for all of them."""
    return min(MOST_CALLS, sum(service.limit for service in services.values()))


def _calling(client: ServiceClient) -> Callable[..., Any]:
    async def call(ctx: Context, **given: Any) -> dict[str, Any]:
        job = ctx.job  # a task of this type may also be submitted by itself: then its parameters are all
        return await client.call(
            ServiceRequest(
                task_id=ctx.task_id,
                fence=ctx.fence,
                attempt=ctx.attempt,
                trace_id=ctx.trace_id,
                traceparent=tracing.current() or ctx.traceparent,
                job_id=job.job_id if job else None,
                step=job.step if job else 0,
                params=job.params if job else given,
                context=job.context if job else {},
            )
        )

    return call
