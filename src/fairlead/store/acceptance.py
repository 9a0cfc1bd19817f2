"""What happens between the act that accepts work and the answer to its client."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Literal

from fairlead.errors import NotRecorded
from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import Connection, text
from fairlead.timeouts import LenientTimeout

MOST_KNOWN = 20_000  # tasks and jobs
RECORDED_WITHIN = 5.0  # seconds, in the ledger mode
LOOK_SECONDS = 0.005

Kind = Literal["task", "job"]
Accepted = tuple[Kind, str]  # and its id


class Acceptance:
    """Remembers what was accepted last, and in the ledger mode waits until SQL has it."""

    def __init__(self, connection: Connection, *, waits: bool) -> None:
        self._connection = connection
        self._waits = waits
        self._latest: deque[Accepted] = deque(maxlen=MOST_KNOWN)
        self._looking: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def confirm(self, kind: Kind, ids: Iterable[str]) -> None:
        """Returns when the caller may answer that these were accepted."""
        if self._waits:
            await self._until_recorded()
        self._latest.extend((kind, one) for one in ids)

    async def missing(self) -> list[Accepted]:
        """Of the latest, those that the store lacks: by now ended and forgotten, or lost."""
        known = list(dict.fromkeys(self._latest))
        commands = [("EXISTS", self._connection.keys.key(kind, one)) for kind, one in known]
        found = await read_in_pieces(self._connection, commands)
        return [one for one, exists in zip(known, found, strict=True) if not exists]

    async def _until_recorded(self) -> None:
        """All callers wait together: the recorder writes what they have submitted in one transaction."""
        epoch = self._connection.membership.epoch
        last, recorded = await self._positions(epoch)
        if last <= recorded:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((last, future))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(epoch))
        try:
            with LenientTimeout(RECORDED_WITHIN):
                await future
        except TimeoutError:
            raise NotRecorded() from None

    async def _look(self, epoch: str) -> None:
        """As long as somebody waits."""
        try:
            while self._waiting:
                await asyncio.sleep(LOOK_SECONDS)
                _, recorded = await self._positions(epoch)
                self._answer(recorded)
        except Exception as problem:  # the store lost it or does not answer: each caller gets the problem
            for _, future in self._waiting:
                if not future.done():
                    future.set_exception(problem)
            self._waiting.clear()

    def _answer(self, recorded: int) -> None:
        left: list[tuple[int, asyncio.Future[None]]] = []
        for last, future in self._waiting:
            if future.done():
                continue
            if last <= recorded:
                future.set_result(None)
            else:
                left.append((last, future))
        self._waiting = left

    async def _positions(self, epoch: str) -> tuple[int, int]:
        """The last event, and up to which of them all are recorded. Events of another epoch do not count."""
        command = ("HMGET", self._connection.keys.meta, "events", "recorded", "epoch")
        ((last, recorded, found),) = await self._connection.read(command)
        if found is None or text(found) != epoch:
            raise NotRecorded()
        return int(last or 0), int(recorded or 0)
