"""The process a handler runs in: `python -m fairlead.app.handler_process PARENT FD`."""

import asyncio
import contextlib
import os
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

import msgspec

from fairlead import tracing
from fairlead.app.loading import load_handler
from fairlead.checks import to_json
from fairlead.errors import FairleadError
from fairlead.model.reports import Frame
from fairlead.model.task import Task
from fairlead.worker.child_process import become_child
from fairlead.worker.context import Context, HandlerMessage
from fairlead.worker.files import Granted, Wishes
from fairlead.worker.handler import Handler
from fairlead.worker.outcome import bad_result, failed
from fairlead.worker.threads import raise_in


class Command(msgspec.Struct):
    """A message of the worker: run this, stop it, its deadline, frames, or a wish that is granted."""

    task: Task | None = None
    source: str = ""
    traceparent: str | None = None  # of its span
    stop: bool = False
    deadline: int | None = None  # ms
    granted: Granted | None = None
    is_over: bool = False  # the deadline has passed
    frames: list[Frame] | None = None


class HandlerHost:
    """Where one handler runs at a time: calls come in by one thread, the main thread carries them out."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._calls: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._sending = threading.Lock()  # a handler may speak from several threads
        self._context: Context | None = None
        self._stop: Callable[[], Any] | None = None  # how to stop what runs
        self._wishes = Wishes(self._send)
        self._halted = False  # for good: after a request to stop there is no other call
        self._learned: tuple[int, bool] | None = None  # of the latest call, which may not have begun
        self._fetching: Future[list[Frame]] = Future()

    def listen(self) -> None:
        with contextlib.suppress(OSError), self._end.makefile("rb") as lines:
            for line in lines:
                wanted = msgspec.json.decode(line, type=Command)
                if wanted.stop:
                    self._halt()
                elif wanted.granted:
                    self._wishes.settle(wanted.granted)
                elif wanted.deadline is not None:
                    self._learn(wanted.deadline, wanted.is_over)
                elif wanted.frames is not None:
                    self._resolve(wanted.frames)
                else:
                    self._learned = None
                    self._calls.put(wanted)
        os._exit(0)  # the worker has gone: there is nothing left to report to

    def _halt(self) -> None:
        with self._lock:
            self._halted = True
            if self._context and self._stop:
                self._context.cancelled = True
                self._stop()
        self._resolve([])  # who waits for frames can be interrupted only when the wait has ended

    def _learn(self, deadline_ms: int, is_over: bool) -> None:
        with self._lock:
            self._learned = deadline_ms, is_over
            if self._context:
                self._context.learn(deadline_ms, is_over)

    def _fetch(self, after: int) -> "Future[list[Frame]]":
        fetching: Future[list[Frame]] = Future()
        self._fetching = fetching
        if self._halted:
            fetching.set_result([])
        else:
            self._send({"frames_after": after})
        return fetching

    def _resolve(self, frames: list[Frame]) -> None:
        with contextlib.suppress(InvalidStateError):  # nobody waits for them any more
            self._fetching.set_result(frames)

    def _begin(self, context: Context, stop: Callable[[], Any]) -> None:
        with self._lock:
            self._context, self._stop = context, stop
            if self._learned:
                context.learn(*self._learned)
            if self._halted:  # asked to stop before there was anything to be stopped
                context.cancelled = True
                stop()

    def serve(self) -> None:
        while (wanted := self._calls.get()) is not None:
            assert wanted.task is not None
            with tracing.continuing(wanted.traceparent):
                answer = self._answer(wanted.task, wanted.source)
            self._send(answer)

    def _answer(self, task: Task, source: str) -> dict[str, Any]:
        try:
            try:
                result = self._call(task, load_handler(source, task.task_type))
            finally:
                with self._lock:
                    self._context = self._stop = None
        except BaseException as problem:
            return {"failed": failed(task, problem)}
        try:
            return {"result": msgspec.Raw(to_json("result", result).encode())}
        except FairleadError as problem:
            return {"failed": bad_result(task.task_id, task.fence, problem)}

    def _call(self, task: Task, handler: Handler) -> Any:
        arguments = handler.arguments(task)
        if handler.is_async:
            return asyncio.run(self._in_loop(task, handler, arguments))
        thread = threading.get_ident()
        self._begin(self._context_of(task, handler, arguments), lambda: raise_in(thread))
        return handler.function(**arguments)

    async def _in_loop(self, task: Task, handler: Handler, arguments: dict[str, Any]) -> Any:
        loop, running = asyncio.get_running_loop(), asyncio.current_task()
        assert running
        context = self._context_of(task, handler, arguments, loop)
        self._begin(context, lambda: loop.call_soon_threadsafe(running.cancel))
        return await handler.function(**arguments)

    def _context_of(
        self,
        task: Task,
        handler: Handler,
        arguments: dict[str, Any],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Context:
        """It becomes one of the arguments if the handler wants it."""
        fetch = self._fetch if task.interactive else None
        context = Context(
            task,
            lambda said: self._say(context, said),
            ask=self._wishes.ask,
            loop=loop,
            fetch_frames=fetch,
        )
        if handler.parameters.context:
            arguments[handler.parameters.context] = context
        return context

    def _say(self, context: Context, said: HandlerMessage) -> None:
        """Unless its call is over: the worker would take it for a message of the next one."""
        with self._sending:
            if self._context is context:
                self._write({"said": said})

    def _send(self, message: Any) -> None:
        with self._sending:
            self._write(message)

    def _write(self, message: Any) -> None:
        self._end.sendall(msgspec.json.encode(message) + b"\n")


def main() -> None:
    end, _ = become_child()
    tracing.export(tracing.inherited_settings(), tracing.WORKER)
    host = HandlerHost(end)
    threading.Thread(target=host.listen, daemon=True).start()
    host.serve()


if __name__ == "__main__":
    main()
