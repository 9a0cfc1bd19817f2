"""A client that submits and watches tasks over one socket, and may have them cancelled when it leaves."""

import asyncio
import contextlib
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import asdict

from fairlead.api.gateway import check_scope
from fairlead.api.live.socket import Socket
from fairlead.api.problems import InvalidBody, TooManyWatched, problem_of
from fairlead.api.request import Request, convert, read_json
from fairlead.api.routes import tasks
from fairlead.backend import retry_while_unavailable
from fairlead.background import cancel_all
from fairlead.errors import AlreadyFinished, FairleadError, UnknownTask
from fairlead.live.feed import TaskFeed
from fairlead.shapes.task import CancelMessage, SubmitBody

MOST_WATCHED = 100
MESSAGE = msgspec.json.Decoder(Any)


class Session:
    def __init__(self, request: Request, socket: Socket) -> None:
        self._request = request
        self._socket = socket
        self._watched: dict[str, asyncio.Task[None]] = {}  # by task, until it has ended
        self._to_cancel: set[str] = set()

    async def run(self) -> None:
        try:
            while True:
                # one after the other: nothing else is received during a submit, so that every accepted task
                # is known here when the client disconnects
                await self._answer(await self._socket.receive())
        finally:
            await self._leave()

    async def _answer(self, said: str | bytes) -> None:
        ref: Any = None
        try:
            wanted = _read(said)
            ref = wanted.pop("ref", None)
            await (self._cancel(wanted, ref) if "cancel" in wanted else self._submit(wanted, ref))
        except FairleadError as error:
            await self._socket.send({"type": "ERROR", "ref": ref, "problem": problem_of(error).body})

    async def _submit(self, wanted: dict[str, Any], ref: Any) -> None:
        follows = _flag(wanted, "cancel_on_disconnect")
        if follows:
            check_scope(self._request.caller, "cancel")
        if len(self._watched) >= MOST_WATCHED:
            raise TooManyWatched(MOST_WATCHED)
        request = self._make_request()
        answer = await tasks.submit(request, convert(wanted, SubmitBody))
        task_id = answer.task_id
        if follows:
            self._to_cancel.add(task_id)
        repeated = request.status == 200
        await self._socket.send({"type": "SUBMITTED", "ref": ref, **asdict(answer), "repeated": repeated})
        if task_id not in self._watched and not (repeated and await self._is_forgotten(task_id)):
            self._watched[task_id] = asyncio.create_task(self._watch(task_id))

    async def _is_forgotten(self, task_id: str) -> bool:
        """An idempotency key may outlive its task: then there is nothing to watch."""
        try:
            await self._request.store.get(task_id)
        except UnknownTask:
            self._to_cancel.discard(task_id)
            return True
        return False

    async def _cancel(self, wanted: dict[str, Any], ref: Any) -> None:
        check_scope(self._request.caller, "cancel")
        request = self._make_request()
        request.path = {"task_id": convert(wanted, CancelMessage).cancel}
        await self._socket.send({"type": "ACCEPTED", "ref": ref, **asdict(await tasks.cancel(request))})

    def _make_request(self) -> Request:
        """A request as over HTTP; the headers of the handshake do not apply to it."""
        return Request(self._request.gateway, self._request.caller, {}, {}, self._request.receive)

    async def _watch(self, task_id: str) -> None:
        if await self._socket.send_all(TaskFeed(self._request.store, task_id).messages(None)):
            del self._watched[task_id]
            self._to_cancel.discard(task_id)

    async def _leave(self) -> None:
        await cancel_all(*self._watched.values())
        await asyncio.gather(*map(self._abort, self._to_cancel))

    async def _abort(self, task_id: str) -> None:
        """Retries while the store is unavailable: nobody else knows that this task is no longer wanted."""
        store = self._request.store
        with contextlib.suppress(AlreadyFinished, UnknownTask):
            await retry_while_unavailable(store, partial(store.cancel, task_id))


def _read(said: str | bytes) -> dict[str, Any]:
    wanted = read_json(said, MESSAGE, "message", "one object")
    if not isinstance(wanted, dict):
        raise InvalidBody("message", 'not an object: send a task such as {"task_type": "echo"}')
    return wanted


def _flag(wanted: dict[str, Any], name: str) -> bool:
    value = wanted.pop(name, False)
    if not isinstance(value, bool):
        raise InvalidBody(name, "neither true nor false")
    return value
