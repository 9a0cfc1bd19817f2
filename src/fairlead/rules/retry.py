"""Another try, or not: what becomes of a task that failed or lost its worker."""

from dataclasses import dataclass

from fairlead.rules.values import Policy, Task
from fairlead.states import State


@dataclass(frozen=True)
class RetryDecision:
    state: State
    retries: int
    crashes: int
    timeout: int
    delay: int = 0


def after_failure(
    task: Task, code: str, retriable: bool, jitter: int, retry_after: int, policy: Policy
) -> RetryDecision:
    """`jitter` is in thousandths: 0 waits half of the back-off, 1000 all of it."""
    if not retriable:
        return RetryDecision(State.FAILED, task.retries, task.crashes, task.timeout)
    if task.retries >= task.max_retries:
        return RetryDecision(State.DEAD_LETTER, task.retries, task.crashes, task.timeout)
    retries = task.retries + 1
    timeout = task.timeout * 3 // 2 if code == "timeout" else task.timeout
    full = min(policy.retry_max, policy.retry_base * 2 ** (retries - 1))
    delay = max(retry_after, full // 2 + full * jitter // 2000)
    state = State.DELAYED if delay > 0 else State.QUEUED
    return RetryDecision(state, retries, task.crashes, timeout, delay)


def after_crash(task: Task, policy: Policy) -> RetryDecision:
    crashes = task.crashes + 1
    state = State.DEAD_LETTER if crashes >= policy.crash_limit else State.QUEUED
    return RetryDecision(state, task.retries, crashes, task.timeout)
