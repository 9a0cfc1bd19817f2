"""Signals of worker processes: the supervisor hears them, and tells its children what to do.

A terminal, `tini -g` and systemd send a signal to the whole group. A child that obeyed it would count one
signal twice, and a handler's process would die in the middle of its task.
"""

import asyncio
import signal
from collections.abc import Callable

from fairlead.clock import monotonic

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AT_ONCE_SECONDS = 1.0  # signals so close together are one: a group may hear each several times


def leave_signals_to_the_parent() -> None:
    """Heard and passed over, not ignored: what a handler starts would inherit that it ignores them."""
    for number in STOPPING:
        signal.signal(number, lambda *_: None)


def on_stop(stop: Callable[[], None], hurry: Callable[[], None]) -> None:
    """The first signal calls `stop`, every later one `hurry`."""
    heard_at: float | None = None

    def hear() -> None:
        nonlocal heard_at
        now, before = monotonic(), heard_at
        if before is None:
            heard_at = now
            stop()
        elif now - before > AT_ONCE_SECONDS:
            heard_at = now
            hurry()

    for number in STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, hear)
