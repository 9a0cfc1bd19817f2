"""How jobs, pipelines and services look as JSON: the same from the command line and over HTTP."""

from collections.abc import Mapping

from fairlead.model.job import Job
from fairlead.model.limit import Limit
from fairlead.settings import ServiceSettings
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.views import View, time_view


def job_view(job: Job) -> View:
    error = job.error
    return {
        "id": job.job_id,
        "feature_name": job.feature_name,
        "status": job.status,
        "current_step_index": job.current_step_index,
        "total_steps": len(job.steps),
        "steps": [
            {"index": s.index, "name": s.name, "task_id": s.task_id, "stage": s.stage} for s in job.steps
        ],
        "input_data": job.input_data,
        "context": job.context,
        "priority": job.priority.word,
        "original_priority": job.original_priority.word,
        "user_id": job.user_id,
        "queued_at": time_view(job.queued_at),
        "promoted_at": time_view(job.promoted_at),
        "last_progress_at": time_view(job.last_progress_at),
        "completed_at": time_view(job.completed_at),
        "error": error
        and {"code": error.code, "message": error.message, "retryable": error.retryable, "step": error.step},
    }


def pipelines_view(pipelines: Mapping[str, Stages]) -> View:
    """The steps of a stage run side by side."""
    return {"pipelines": [{"name": name, "stages": pipelines[name]} for name in sorted(pipelines)]}


def service_view(limit: Limit, settings: Mapping[str, ServiceSettings], *, with_url: bool = True) -> View:
    """The service of this limit, with its use and, if these settings have it, its URL."""
    name = limit.name.removeprefix(SERVICE)
    known = settings.get(name)
    return {
        "name": name,
        "limit": limit.limit,
        "active": limit.active,
        "waiting": limit.waiting,
        "url": known.url if known and with_url else None,
        "timeout_seconds": known and known.timeout_seconds,
        "max_attempts": known and known.max_attempts,
    }
