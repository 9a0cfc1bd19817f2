"""`fairlead worker`: run the tasks of an app."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from cyclopts import Parameter

from fairlead.checks import check_whole
from fairlead.cli.options import MOST_PROCESSES, ClientOptions, ServerOptions
from fairlead.client.target import Target
from fairlead.errors import InvalidInput
from fairlead.log.setup import set_up_logging
from fairlead.open_files import raise_open_files
from fairlead.worker.options import GRACE_SECONDS, Plan, WorkerOptions
from fairlead.worker.supervisor import Supervisor


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerBackendOptions(ServerOptions, ClientOptions):
    """Of a worker: it keeps running, and may work through a gateway, in several namespaces."""

    namespace: Annotated[str | None, Parameter(parse=False)] = None
    namespaces: Annotated[
        tuple[str, ...],
        Parameter(name="--namespace", negative=(), help="Namespace to claim from; repeatable: in turn."),
    ] = ()

    def each(self) -> "Iterator[WorkerBackendOptions]":
        """These options for each namespace, which may have settings of its own."""
        for name in self.namespaces or (None,):
            yield replace(self, namespace=name)


BACKEND = WorkerBackendOptions()


def worker(
    target: Annotated[str, Parameter(help="Where the app is: module:attribute, as in tasks:fl.")] = "",
    /,
    *,
    services: Annotated[
        bool, Parameter(help="Instead of an app: call the services of the settings.", negative=())
    ] = False,
    processes: Annotated[int, Parameter(help="Worker processes to run; one that dies is replaced.")] = 1,
    capacity: Annotated[int | None, Parameter(help="Tasks at once in each process.")] = None,
    reserve: Annotated[int | None, Parameter(help="Of those, how many for high priority only.")] = None,
    capability: Annotated[tuple[str, ...], Parameter(help="A capability of this worker; repeatable.")] = (),
    name: Annotated[str, Parameter(help="Name of the worker; default: that of the machine.")] = "",
    grace: Annotated[
        float,
        Parameter(help="Seconds that running tasks get after SIGTERM or Ctrl-C before they are given back."),
    ] = GRACE_SECONDS,
    options: WorkerBackendOptions = BACKEND,
) -> int:
    """Run the tasks of an app until SIGTERM or Ctrl-C; a second signal ends the draining."""
    if bool(target) == services:
        raise InvalidInput("app", "name one, as in `fairlead worker tasks:fl`, or say --services; not both")
    if services and len(options.namespaces) > 1:
        raise InvalidInput("--services", "each namespace has services of its own: run a worker for each")
    check_whole("--processes", processes, MOST_PROCESSES, least=1)
    # a mistake in them is reported once, not by every process
    first, *_ = [one.client_settings() for one in options.each()]
    set_up_logging(first.log)
    raise_open_files()
    plan = Plan(
        app=target,
        target=Target(
            url=options.url or options.engine,
            data=str(options.data) if options.data else None,
            config=str(options.config) if options.config else None,
            key=options.key,
        ),
        namespaces=tuple(dict.fromkeys(options.namespaces)),
        options=WorkerOptions(
            capacity=capacity, reserve=reserve, capabilities=capability, name=name, grace=grace
        ),
    )
    return asyncio.run(Supervisor(plan, processes).run())
