"""`fairlead server`: the gateway over HTTP, with its upkeep."""

import asyncio
import os
import socket
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from fairlead import tracing
from fairlead.api.processes import keep_processes
from fairlead.api.serving import address_of, check_exposure, listen, serve
from fairlead.background import loop_factory
from fairlead.checks import check_seconds, check_whole
from fairlead.cli.options import MOST_PROCESSES, ServerOptions
from fairlead.history.remembering import recall_from_history
from fairlead.log.setup import set_up_logging
from fairlead.open_files import raise_open_files
from fairlead.settings import Settings
from fairlead.store.engine.exec_tied import die_with
from fairlead.store.opening import gateway_stores
from fairlead.store.store import Store
from fairlead.worker.options import GRACE_SECONDS
from fairlead.worker.signals import StopRequest

MOST_PORT = 65_535


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ListenOptions:
    """Where the gateway listens; an option overrides the file and the environment."""

    host: Annotated[str | None, Parameter(help="Address to listen on; else 127.0.0.1.")] = None
    port: Annotated[int | None, Parameter(help="Port to listen on; else 8000. 0: any free one.")] = None
    insecure: Annotated[
        bool, Parameter(help="Serve an address that others can reach, without keys.", negative=())
    ] = False
    grace: Annotated[
        float,
        Parameter(
            help="Seconds that calls of services get after SIGTERM or Ctrl-C before they are given back."
        ),
    ] = GRACE_SECONDS

    govern: Annotated[
        bool,
        Parameter(
            help="Make these settings the policy of the namespace; else one that exists is kept.", negative=()
        ),
    ] = False

    def stop(self) -> StopRequest:
        check_seconds("--grace", self.grace, zero=True)
        return StopRequest(self.grace)

    def host_in(self, settings: Settings) -> str:
        return self.host or settings.server.host

    def listen(self, settings: Settings) -> socket.socket:
        if self.port is not None:
            check_whole("--port", self.port, MOST_PORT)
        return listen(self.host_in(settings), settings.server.port if self.port is None else self.port)


LISTEN, SERVER = ListenOptions(), ServerOptions()


def server(
    *,
    where: ListenOptions = LISTEN,
    options: ServerOptions = SERVER,
    processes: Annotated[int, Parameter(help="Server processes on the one port.")] = 1,
    inherited: Annotated[tuple[int, int] | None, Parameter(show=False)] = None,
) -> None:
    """Serve the gateway over HTTP until SIGTERM or Ctrl-C."""
    check_whole("--processes", processes, MOST_PROCESSES, least=1)
    settings, sources = options.read_settings()
    set_up_logging(settings.log)
    tracing.export(settings.tracing, tracing.SERVER)
    raise_open_files()
    if inherited is None:
        opened = where.listen(settings)
    else:  # one of several processes: the socket and the process that opened it
        fd, parent = inherited
        opened = socket.socket(fileno=fd)
        if sys.platform == "linux" and not die_with(parent):
            return
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        opening = gateway_stores(
            settings,
            sources,
            govern=where.govern,
            declared=inherited is not None,
            recall=recall_from_history,
        )
        runner.run(_serve(opening, settings, where, opened, None if inherited else processes))
    tracing.close()


async def _serve(
    opening: AbstractAsyncContextManager[list[Store]],
    settings: Settings,
    where: ListenOptions,
    opened: socket.socket,
    processes: int | None,
) -> None:
    """`processes`: None: this is one of several, and the first has said where it listens."""
    stop = where.stop().on_signals()
    host = where.host_in(settings)
    async with opening as stores:
        await check_exposure(stores, host, where.insecure)
        if processes:
            print(f"Fairlead listens at {address_of(opened)}", flush=True)
        if processes and processes > 1:
            command = [sys.executable, "-m", "fairlead.cli", *sys.argv[1:]]
            command += ["--inherited", str(opened.fileno()), str(os.getpid())]
            await keep_processes(command, opened, processes, stop)
        else:
            await serve(stores, settings, host, opened, stop)
