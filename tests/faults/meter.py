"""A service that measures itself: which calls it had in hand, from when to when, under which fence."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairlead.clock import now_ms
from tests.faults.history import Event
from tests.pipeline.servers import Request, says


@dataclass
class Seen:
    """One call; `ended` is None if the caller was gone before the answer."""

    service: str
    step: str  # <job>:<step>, from its Idempotency-Key
    fence: int
    began: int  # ms of this machine's clock, which is the store's too
    ended: int | None = None


@dataclass
class Meter:
    """Answers every call after a while with the fence it came with."""

    dice: random.Random
    seconds: Mapping[str, tuple[float, float]]  # that a call of each service takes
    calls: list[Seen] = field(default_factory=list)

    async def reply(self, request: Request, writer: asyncio.StreamWriter) -> None:
        service = request.body["meta"]["service_name"]
        step, fence = request.headers["idempotency-key"], int(request.headers["x-fairlead-fence"])
        seen = Seen(service, step, fence, now_ms())
        self.calls.append(seen)
        await asyncio.sleep(self.dice.uniform(*self.seconds[service]))
        seen.ended = now_ms()  # before the answer: a call that follows from the answer begins later
        await says({"data": {"fence": fence}})(request, writer)

    def cut_off(self) -> list[Seen]:
        return [seen for seen in self.calls if seen.ended is None]

    def most_at_once(self, tasks: Mapping[str, str], events: Iterable[Event]) -> dict[str, int]:
        """Of each service; `tasks` are the tasks of steps.

        An endpoint may continue to work for a dead caller. So a call that was cut off counts as long as
        its lease lasted: up to the event by which the store ended the run with this fence and freed its
        unit. A call that was answered counts up to its answer.
        """
        leases = {(event.task, event.fence): event.at for event in events if event.before == "executing"}
        moves: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for seen in self.calls:
            end = leases[tasks[seen.step], seen.fence] if seen.ended is None else seen.ended
            moves[seen.service] += [(seen.began, 1), (max(seen.began, end), -1)]
        return {service: _peak(found) for service, found in moves.items()}


def _peak(moves: list[tuple[int, int]]) -> int:
    now = most = 0
    # in the same millisecond: ends first, because a call begins when another has ended
    for _, by in sorted(moves):
        now += by
        most = max(most, now)
    return most
