"""The audit: what was changed by hand."""

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.shapes.audit import AuditAnswer, AuditEntryAnswer, AuditQuery, VerifyAnswer

routes = Routes("/api/v1/audit", scope="admin", for_all_tenants=True)


@routes.get(refusals=(errors.InvalidInput,))
async def find(request: Request, query: AuditQuery) -> AuditAnswer:
    """List what was changed by hand, by whom and why, the latest first."""
    page = await request.store.audit.page(query.limit, query.cursor)
    entries = [AuditEntryAnswer.from_value(entry) for entry in page.entries]
    return AuditAnswer(entries=entries, next_cursor=page.next_cursor or None)


@routes.get("/verify")
async def verify(request: Request) -> VerifyAnswer:
    """Check that no entry was edited, added or removed."""
    return VerifyAnswer(problems=await request.store.audit.verify())
