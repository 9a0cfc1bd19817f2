"""Workers of a gateway, as the store has them."""

from collections.abc import Collection, Iterable

from fairlead.client.transport import ANSWER_WITHIN, Part, path
from fairlead.model.reports import Grant
from fairlead.model.worker import Beat
from fairlead.shapes.worker import (
    DrainAnswer,
    HeartbeatAnswer,
    HeartbeatBody,
    LeaveAnswer,
    RegisterAnswer,
    RegisterBody,
    StallAnswer,
    StallBody,
    WaitAnswer,
    WaitBody,
)

BEAT_WITHIN = 5.0  # seconds; a late heartbeat is better repeated while the lease lasts


class Workers(Part):
    async def register(
        self,
        worker: str,
        *,
        capabilities: Iterable[str] = (),
        task_types: Iterable[str] | None = None,
        capacity: int = 1,
        reserve: int = 0,
        name: str = "",
        version: str = "",
    ) -> None:
        body = RegisterBody(
            worker_id=worker,
            capabilities=list(capabilities),
            capacity=capacity,
            reserve=reserve,
            task_types=None if task_types is None else list(task_types),
            name=name or None,
            version=version or None,
        )
        await self._transport.post(RegisterAnswer, path("internal", "workers", "register"), body)

    async def heartbeat(self, worker: str, *, draining: bool = False, lease_ms: int = 30_000) -> Beat:
        """Prolongs the leases of everything the worker holds, for as long as the gateway says."""
        body = HeartbeatBody(status="draining" if draining else "active")
        within = min(BEAT_WITHIN, max(1.0, lease_ms / 3000))
        address = _worker(worker, "heartbeat")
        return (await self._transport.post(HeartbeatAnswer, address, body, within=within)).to_value()

    async def stall(self, worker: str, request: str, begun: Collection[int]) -> list[Grant]:
        body = StallBody(request_id=request, begun=list(begun))
        answer = await self._transport.post(StallAnswer, _worker(worker, "stall"), body, repeat=True)
        return [row.to_value() for row in answer.released]

    async def wait(self, worker: str, seconds: float) -> str | None:
        """Until somebody calls this worker, or the time is over: `cancel:<task>`, or what there is to claim.

        A hint: claim in any case.
        """
        body, within = WaitBody(wait_seconds=seconds), seconds + ANSWER_WITHIN
        return (await self._transport.post(WaitAnswer, _worker(worker, "wait"), body, within=within)).called

    async def drain(self, worker: str) -> None:
        await self._transport.post(DrainAnswer, path("api", "v1", "workers", worker, "drain"), repeat=True)

    async def leave(self, worker: str) -> None:
        await self._transport.ask(LeaveAnswer, "DELETE", _worker(worker))


def _worker(worker: str, *parts: str) -> str:
    return path("internal", "workers", worker, *parts)
