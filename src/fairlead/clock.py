"""The only place that reads this machine's clocks; decisions go by the store's clock, never by this one."""

import time


def now_ms() -> int:
    """Wall clock in milliseconds since the epoch: for logs, people and the ages of files, never for tasks."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds that only grow: for measuring how long this process has waited."""
    return time.monotonic()
