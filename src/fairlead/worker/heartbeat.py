"""The heartbeat of one worker, outside of its event loop, so that no handler can hold it up.

It runs in a thread of the worker's process or, under a supervisor, in the supervisor's process, where not
even a handler that holds the interpreter's lock for minutes can stop it. It prolongs every lease the worker
holds and sends the worker, over a pipe, what it learned. It does not vouch for a worker that has stopped or
ended. It gives back what a worker that does not answer has not begun.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

from fairlead.backend import Backend, UpkeepBackend
from fairlead.background import in_background, no_more_threads, until, within
from fairlead.client.opening import connected_backend
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, StoreLost, StoreUnavailable, UnknownWorker
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.model.worker import Beat
from fairlead.upkeep.duties import BATCH, log_dead_workers
from fairlead.worker.begun import Begun, Silence
from fairlead.worker.pipe import MessagePipe, Pipe

RETRY_SECONDS = 0.5
LOOK_SECONDS = 0.25  # how often it looks whether the worker still shows signs of life
QUIET_SECONDS = 1.5  # without one: a worker gives one every half second
AGAIN_SECONDS = 1.0  # between two acts for a worker that stays silent: a claim by it may have come late

log = EventLog("fairlead.worker")


class Heartbeat:
    def __init__(
        self, backend: Backend, pipe: Pipe, begun: Begun, vouch: Callable[[], bool] = lambda: True
    ) -> None:
        self.worker: str | None = None
        # of what the worker holds, by the latest beat; monotonic, the same in every process of a machine
        self.lease_ends: dict[str, float] = {}
        self.deadlines: dict[str, float] = {}
        # what is to be reported when it is dead, failures with their codes; None: it did not say goodbye
        self.left_over: list[tuple[str, int, str | None]] | None = None
        self.apart: list[tuple[str, int]] = []  # tasks and fences of its runs that are not in its process
        self.alive_at = 0.0  # when the worker last gave a sign of life
        self.prolonged_at = 0.0  # when its leases last were
        self.lease_seconds = 0.0
        self._beat_seconds = 0.0
        self._backend = backend
        self._pipe = pipe
        self._silence = Silence(backend, pipe, begun)
        self._vouch = vouch
        self._draining = False
        self._lost = ""  # the loss of the store's data that was logged
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until the worker says goodbye or its end of the pipe is gone."""
        async with in_background({"heartbeat": self._beat_on, "life_watch": self._watch}):
            async for message in self._pipe:
                self.alive_at = monotonic()
                if "alive" in message:
                    self.apart = message["apart"]
                    continue
                if "worker" in message:
                    self.worker = message["worker"]
                    self.lease_seconds = message["lease_seconds"]
                    self._beat_seconds = message["beat_seconds"]
                    self.lease_ends, self.deadlines = {}, {}
                    self.prolonged_at = self.alive_at
                elif message.get("draining"):
                    self._draining = True
                elif "bye" in message:
                    self.left_over = message["bye"]
                    return
                self._changed.set()  # also when it only asks for a beat

    async def _watch(self) -> None:
        """Counted in looks, not by the clock: this process may just have been stopped itself."""
        before, quiet = 0.0, 0.0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self.worker is None:
                continue
            if self.alive_at != before:
                before, quiet = self.alive_at, 0.0
                await self._silence.end(self.worker)
            elif (quiet := quiet + LOOK_SECONDS) >= QUIET_SECONDS:
                quiet -= AGAIN_SECONDS
                await self._silence.relieve(self.worker)

    async def _beat_on(self) -> None:
        while True:
            pause = await self._beat() if self.worker and self._vouch() else RETRY_SECONDS
            await within(pause, self._changed.wait())
            self._changed.clear()

    async def _beat(self) -> float:
        """One heartbeat; returns the pause before the next."""
        assert self.worker
        sent = monotonic()
        try:
            beat = await self._backend.workers.heartbeat(
                self.worker, draining=self._draining, lease_ms=round(self.lease_seconds * 1000)
            )
        except UnknownWorker:  # given up as dead: it must register again
            self.lease_ends, self.deadlines = {}, {}
            self._pipe.send({"unknown": self.worker})
            return RETRY_SECONDS
        except StoreLost as problem:
            await self._rejoin(problem)
            return RETRY_SECONDS
        except StoreUnavailable as problem:
            log.warning("heartbeat_failed", worker=self.worker, problem=str(problem))
            with contextlib.suppress(FairleadError):
                await self._backend.reopen()
            return RETRY_SECONDS
        except FairleadError as problem:
            log.error("heartbeat_failed", worker=self.worker, problem=str(problem))
            return RETRY_SECONDS
        self._lost = ""
        self._learn(beat, sent)
        self._pipe.send(
            {
                "sent": sent,
                "state": beat.state,
                "cancelled": beat.cancelled,
                "lease_ends": self.lease_ends,
                "deadlines": beat.deadlines,
            }
        )
        if beat.should_bury and self._backend.upkeep:
            await self._do_upkeep(self._backend.upkeep)
        return self._beat_seconds

    def _learn(self, beat: Beat, sent: float) -> None:
        """Counted from before the call: rather too early than too late."""
        here = sent - beat.now / 1000
        known = {**beat.leases, **beat.stopping}
        self.lease_ends = {task: here + until / 1000 for task, until in known.items()}
        self.deadlines = {task: here + at / 1000 for task, at in beat.deadlines.items()}
        self.prolonged_at = sent

    async def _rejoin(self, problem: StoreLost) -> None:
        """The worker itself declares what is needed: this connection only has to know the epoch."""
        if not self._lost:
            log.error("store_lost", worker=self.worker, problem=str(problem))
        self._lost = str(problem)
        with contextlib.suppress(FairleadError):
            await self._backend.rejoin()

    async def _do_upkeep(self, upkeep: UpkeepBackend) -> None:
        """There is no gateway that would notice that other workers are dead, or that memory is full."""
        try:
            while await log_dead_workers(upkeep) >= BATCH:
                pass
            await upkeep.inspect()
            while await upkeep.forget() >= BATCH:
                pass
            await upkeep.tidy_blobs()
        except FairleadError as problem:
            log.warning("upkeep_failed", worker=self.worker, problem=str(problem))
        except RuntimeError as problem:
            if not no_more_threads(problem):
                raise


class HeartbeatThread:
    """A heartbeat in a thread of this process, with its own event loop and its own connection."""

    def __init__(self, backend: Backend, begun: Begun) -> None:
        self._begun = begun
        self._settings = backend.settings
        self._thread = threading.Thread(target=self._run, name="fairlead-heartbeat", daemon=True)

    async def __aenter__(self) -> MessagePipe:
        """The worker's end of the pipe."""
        ours, self._theirs = socket.socketpair()
        self._pipe = await MessagePipe.over(ours)
        self._thread.start()
        return self._pipe

    async def __aexit__(self, *_: object) -> None:
        """After the worker said goodbye, or without one."""
        await self._pipe.close()
        await until(lambda: not self._thread.is_alive())

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        except Exception as problem:  # the worker notices that the pipe has ended
            log.error("heartbeat_thread_failed", problem=str(problem), traceback=traceback_of(problem))

    async def _beat(self) -> None:
        pipe = await MessagePipe.over(self._theirs)
        try:
            async with connected_backend(self._settings) as backend:
                await Heartbeat(backend, pipe, self._begun).run()
        finally:
            await pipe.close()
