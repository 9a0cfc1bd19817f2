"""Runs that the store ended because nobody will report on them: the worker was lost, or is past its time."""

from typing import Any

from fairlead.log.events import EventLog
from fairlead.model.states import TERMINAL

FACTS = ("task", "type", "attempt", "fence", "job", "step", "trace", "worker", "code", "status")

log = EventLog("fairlead.store")


def log_lost_runs(rows: list[dict[str, Any]]) -> None:
    """Whoever called the act that ended them says so: the worker itself cannot."""
    for row in rows:
        write = log.error if row["status"] in TERMINAL else log.warning
        write("task_failed", traceback="", **{name: row.get(name) for name in FACTS})
