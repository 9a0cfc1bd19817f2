"""Accounts: what has a fair share, and its weight."""

from fairlead.settings import Settings


def account_of(tenant: str | None, user: str | None, settings: Settings) -> str:
    """A user within its tenant, or a tenant. "" if neither is named."""
    tenant, user = tenant or "", user or ""
    if settings.fairness.by == "tenant":
        return tenant
    return f"{len(tenant.encode())}:{tenant}:{user}" if tenant or user else ""


def weight_of(tenant: str | None, user: str | None, settings: Settings) -> float:
    weights = settings.fairness.weights
    if settings.fairness.by == "user_id" and user in weights:
        return weights[user]
    return weights.get(tenant or "", 1.0)
