"""One record in the log for each attempt that failed; it never holds the parameters of the task."""

from collections.abc import Iterator, Mapping
from typing import Any

from fairlead.log.events import EventLog, Fact
from fairlead.log.secrets import HIDDEN
from fairlead.model.reports import Failed
from fairlead.model.task import Task
from fairlead.store.policy import CRASH_LIMIT

log = EventLog("fairlead.worker")

LEAST_LETTERS = 6  # of a text in the parameters that is looked for; shorter ones are words of any traceback
MOST_TEXTS = 1000


def log_failure(task: Task, report: Failed, worker: str, facts: Mapping[str, Fact] | None = None) -> None:
    """`facts`: what else is known, for example of the service that failed."""
    if report.crashed:
        retries_left = max(0, CRASH_LIMIT - task.crash_count - 1)
    else:
        retries_left = max(0, task.max_retries - task.retry_count) if report.retriable else 0
    write = log.warning if retries_left else log.error
    write(
        "task_failed",
        **facts_of(task),
        worker=worker,
        code=report.code,
        **(facts or {}),
        retriable=report.retriable,
        retries_left=retries_left,
        # an error of Fairlead's own has no traceback, and its message says what is wrong
        problem=None if report.traceback or facts else without(report.message, task.parameters),
        traceback=without(report.traceback, task.parameters),
    )


def facts_of(task: Task) -> dict[str, Fact]:
    return {
        "task": task.task_id,
        "type": task.task_type,
        "attempt": task.attempt,
        "fence": task.fence,
        "job": task.job_id,
        "step": task.step,
        "trace": task.trace_id,
    }


def without(text: str, parameters: Mapping[str, Any]) -> str:
    """The text with `***` wherever it quotes a text of the parameters, or the beginning of one."""
    if not text:
        return text
    for found, _ in zip(_texts(parameters), range(MOST_TEXTS), strict=False):
        # as it is, and as it is written in the messages of most errors
        for quoted in {found, repr(found)[1:-1]}:
            text = _replaced(text, quoted)
    return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LEAST_LETTERS:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _replaced(text: str, secret: str) -> str:
    """A long one may have been cut off where it is quoted: its first letters are enough."""
    head, start = secret[:32], 0
    while (start := text.find(head, start)) >= 0:
        end = start + len(head)
        while end < len(text) and end - start < len(secret) and text[end] == secret[end - start]:
            end += 1
        text = text[:start] + HIDDEN + text[end:]
        start += len(HIDDEN)
    return text
