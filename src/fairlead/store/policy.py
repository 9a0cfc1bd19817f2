"""The numbers that acts decide by, stored in the namespace so that they are the same for all processes."""

from fairlead.settings import Settings

SCHEMA = 4
CRASH_LIMIT = 3  # a task that lost this many workers is quarantined


def stored_policy(settings: Settings) -> dict[str, int]:
    """Times in whole milliseconds."""
    promotion, retry, retention = settings.promotion, settings.retry, settings.retention
    seconds = {
        "low_to_medium": promotion.low_to_medium_seconds,
        "low_to_high": promotion.low_to_high,
        "medium_to_high": promotion.medium_to_high_seconds,
        "hold_after": settings.scheduling.hold_after_seconds,
        "hold_for": settings.scheduling.hold_seconds,
        "grace": settings.lease.grace_seconds,
        "retry_base": retry.base_seconds,
        "retry_max": retry.max_seconds,
        "finished_ttl": retention.finished_seconds,
        "least_ttl": retention.least_seconds,
        "dead_ttl": retention.dead_seconds,
        "idempotency_ttl": retention.idempotency_seconds,
    }
    return {name: max(0, round(value * 1000)) for name, value in seconds.items()} | {
        "budget": promotion.budget,
        "started_first": int(settings.scheduling.started_jobs_first),
        "crash_limit": CRASH_LIMIT,
        "worker_ttl": settings.worker_ttl_ms,
        "max_events": settings.outbox.max_events,
        "max_queued": settings.admission.max_queued,
        "max_finished": retention.max_finished,
        "max_finished_bytes": retention.max_finished_bytes,
        "max_dead": retention.max_dead,
        "max_queued_per_user": settings.admission.max_queued_per_user,
        "max_task_types": settings.admission.max_task_types,
    }
