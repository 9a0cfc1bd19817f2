"""Retry or not: the next state of a task that failed or lost its worker."""

from dataclasses import dataclass

from fairlead.model.states import State
from fairlead.rules.values import Policy, Task

LOSSES_PER_CRASH = 4
MOST_LONGER = 3  # a timeout grows to this many times what it was at first


@dataclass(frozen=True)
class RetryDecision:
    state: State
    retries: int
    crashes: int
    losses: int
    timeout: int
    delay: int = 0


def after_failure(
    task: Task, code: str, retriable: bool, jitter: int, retry_after: int, policy: Policy
) -> RetryDecision:
    """`jitter` is in thousandths: 0 waits half of the back-off, 1000 the whole."""
    if not retriable:
        return RetryDecision(State.FAILED, task.retries, task.crashes, task.losses, task.timeout)
    if task.retries >= task.max_retries:
        return RetryDecision(State.DEAD_LETTER, task.retries, task.crashes, task.losses, task.timeout)
    retries = task.retries + 1
    timeout = task.timeout
    if code == "timeout":
        timeout = min(timeout * 3 // 2, MOST_LONGER * task.timeout_given)
    full = min(policy.retry_max, policy.retry_base * 2 ** (retries - 1))
    delay = max(retry_after, full // 2 + full * jitter // 2000)
    state = State.DELAYED if delay > 0 else State.QUEUED
    return RetryDecision(state, retries, task.crashes, task.losses, timeout, delay)


def after_crash(task: Task, policy: Policy) -> RetryDecision:
    crashes = task.crashes + 1
    state = State.DEAD_LETTER if crashes >= policy.crash_limit else State.QUEUED
    return RetryDecision(state, task.retries, crashes, task.losses, task.timeout)


def after_loss(task: Task, policy: Policy) -> RetryDecision:
    """Its worker was lost, probably not because of it; but no task may take workers with it for ever."""
    losses = task.losses + 1
    state = State.DEAD_LETTER if losses >= policy.crash_limit * LOSSES_PER_CRASH else State.QUEUED
    return RetryDecision(state, task.retries, task.crashes, losses, task.timeout)
