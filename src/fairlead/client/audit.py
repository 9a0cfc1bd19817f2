"""The audit of a gateway's namespace, as the store has it."""

from fairlead.client.transport import Part, path
from fairlead.model.audit import AuditPage
from fairlead.shapes.audit import AuditAnswer, VerifyAnswer


class Audit(Part):
    async def page(self, count: int = 100, cursor: str = "") -> AuditPage:
        address = path("api", "v1", "audit")
        answer = await self._transport.get(AuditAnswer, address, limit=count, cursor=cursor)
        return AuditPage([one.to_value() for one in answer.entries], answer.next_cursor or "")

    async def verify(self) -> list[str]:
        return (await self._transport.get(VerifyAnswer, path("api", "v1", "audit", "verify"))).problems
