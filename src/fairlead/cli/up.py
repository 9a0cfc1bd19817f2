"""`fairlead up`: all in one command: the engine, the gateway over HTTP, its upkeep, and a worker."""

import asyncio
import socket
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from cyclopts import Parameter

from fairlead import tracing
from fairlead.api.serving import address_of, check_exposure, serve
from fairlead.background import done_before, keep_running, loop_factory
from fairlead.checks import check_whole
from fairlead.cli.demo.show import run_demo, run_demo_once, with_demo
from fairlead.cli.options import MOST_PROCESSES, ServerOptions
from fairlead.cli.server import LISTEN, SERVER, ListenOptions
from fairlead.client.target import Target
from fairlead.history.remembering import recall_from_history
from fairlead.log.setup import set_up_logging
from fairlead.open_files import raise_open_files
from fairlead.settings import Settings
from fairlead.store.opening import gateway_stores
from fairlead.store.store import Store
from fairlead.worker.options import Plan, WorkerOptions
from fairlead.worker.signals import on_stop
from fairlead.worker.supervisor import Supervisor


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Work:
    """What is run besides the server."""

    app: Annotated[
        str | None, Parameter(help="Run the tasks of this app: module:attribute, as in tasks:fl.")
    ] = None
    processes: Annotated[int, Parameter(help="Worker processes for the app.")] = 1
    demo: Annotated[
        bool, Parameter(help="Run sample work in a namespace of its own, and show it on the dashboard.")
    ] = False
    once: Annotated[
        bool, Parameter(help="Stop when the first of the sample work is done, quickly, and say how it went.")
    ] = False


WORK = Work()


def up(*, work: Work = WORK, where: ListenOptions = LISTEN, options: ServerOptions = SERVER) -> int:
    """Start the engine (or connect to the one given) and serve it over HTTP until Ctrl-C."""
    check_whole("--processes", work.processes, MOST_PROCESSES, least=1)
    settings, sources = options.read_settings()
    set_up_logging(settings.log)
    tracing.export(settings.tracing, tracing.SERVER)
    raise_open_files()
    opened = where.listen(settings)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        everything = Up(settings, where, work, options.config)
        opening = gateway_stores(everything.served, sources, govern=where.govern, recall=recall_from_history)
        code = runner.run(everything.run(opening, opened))
    tracing.close()
    return code


class Up:
    def __init__(self, settings: Settings, where: ListenOptions, work: Work, config: Path | None) -> None:
        self._settings = settings
        self.served = with_demo(settings) if work.demo else settings
        self._where = where
        self._work = work
        self._config = config
        self._stop = where.stop()
        self._supervisor: Supervisor | None = None

    async def run(self, opening: AbstractAsyncContextManager[list[Store]], opened: socket.socket) -> int:
        on_stop(self._stop_gently, self._stop_now)
        host, end = self._where.host_in(self._settings), asyncio.Event()
        async with opening as stores:
            store = stores[0]
            await check_exposure(stores, host, self._where.insecure)
            print(f"Fairlead listens at {address_of(opened)}", flush=True)
            async with asyncio.TaskGroup() as group:
                group.create_task(serve(stores, self.served, host, opened, self._stop, end))
                if self._work.demo and not self._work.once:
                    demo = keep_running("demo", partial(run_demo, store))
                    group.create_task(done_before(demo, self._stop.requested.wait()))
                code = await self._until_stopped(store)
                end.set()  # not before: it serves while the worker drains
        return code

    def _stop_gently(self) -> None:
        """The worker drains, and calls of services end."""
        self._stop.requested.set()
        if self._supervisor:
            self._supervisor.stop()

    def _stop_now(self) -> None:
        """They return what still runs to the queue."""
        self._stop.hurried.set()
        if self._supervisor:
            self._supervisor.hurry()

    async def _until_stopped(self, store: Store) -> int:
        if self._work.once:
            if self._work.demo:
                await done_before(run_demo_once(store), self._stop.requested.wait())
            return 0
        print("Press Ctrl-C to stop.", flush=True)
        if self._work.app:
            self._supervisor = Supervisor(self._plan(self._work.app, store), self._work.processes)
            if code := await self._supervisor.run(obey_signals=False):
                return code  # the app cannot be run, and it was said why
        await self._stop.requested.wait()
        return 0

    def _url(self, store: Store) -> str:
        return self._settings.engine.url or f"unix://{quote(store.connection.address)}"

    def _plan(self, app: str, store: Store) -> Plan:
        """The app's own idea of a store does not count here: it works for this one."""
        return Plan(
            app=app,
            target=Target(
                url=self._url(store),
                data=self._settings.engine.data,  # the blobs are there
                namespace=self._settings.engine.namespace,
                config=str(self._config) if self._config else None,
            ),
            options=WorkerOptions(grace=self._where.grace),
        )
