"""Failures that workers report over HTTP: some keep no log of their own, or keep it far away."""

from collections.abc import Sequence

from fairlead.errors import FairleadError
from fairlead.log.events import EventLog
from fairlead.model.reports import Failed
from fairlead.model.states import State

log = EventLog("fairlead.api")


def log_reported(worker: str, failed: Sequence[Failed], answers: Sequence[State | FairleadError]) -> None:
    """Those that were accepted, and what becomes of the task. What the error says is in the task's own."""
    for report, status in zip(failed, answers, strict=True):
        if isinstance(status, State):
            log.info(
                "failure_reported",
                task=report.task_id,
                fence=report.fence,
                worker=worker,
                code=report.code,
                retriable=report.retriable,
                status=status,
            )
