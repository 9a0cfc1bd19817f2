"""What the caller of an act logs about tasks, because nobody else knows it."""

from typing import Any

from fairlead.log.events import EventLog
from fairlead.model.states import TERMINAL

RUN_FACTS = ("task", "type", "attempt", "fence", "job", "step", "trace", "worker", "code", "status")
TRANSITION_FACTS = (
    *("act", "task", "type", "before", "after", "fence", "worker", "job", "step", "trace", "code"),
)

log = EventLog("fairlead.store")
transitions = EventLog("fairlead.transitions")


def log_changes(answer: dict[str, Any]) -> None:
    """Takes from the answer what is for the log alone."""
    for row in answer.pop("lost_runs", ()):
        _log_lost_run(row)
    for row in answer.pop("transitions", ()):
        facts = {name: row.get(name) for name in TRANSITION_FACTS}
        transitions.info("transition", traceback="", **facts)


def _log_lost_run(row: dict[str, Any]) -> None:
    """Ended by the act because nobody will report on it: its worker was lost, or is overdue."""
    write = log.error if row["status"] in TERMINAL else log.warning
    write("task_failed", traceback="", **{name: row.get(name) for name in RUN_FACTS})
