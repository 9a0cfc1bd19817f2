"""Signals that stop a process of Fairlead: the first asks it to stop, later ones to hurry.

For workers, the supervisor handles them and sends its children what to do.

A terminal, `tini -g` and systemd send a signal to the whole group. A child that obeyed it would count one
signal twice, and a handler's process would die in the middle of its task.
"""

import asyncio
import atexit
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.clock import monotonic

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HURRY = signal.SIGUSR1  # from a parent, which has counted the signals: no process of a group sees it twice
AT_ONCE_SECONDS = 1.0  # signals so close together are one: a group may hear each several times


def leave_signals_to_the_parent() -> None:
    """Handled by doing nothing, not ignored: what a handler starts would inherit that they are ignored."""
    for number in STOPPING:
        signal.signal(number, lambda *_: None)


def on_stop(stop: Callable[[], None], hurry: Callable[[], None]) -> None:
    """The first signal calls `stop`, every later one `hurry`, and HURRY always `hurry`."""
    received_at: float | None = None

    def hear() -> None:
        nonlocal received_at
        now, before = monotonic(), received_at
        if before is None:
            received_at = now
            stop()
        elif now - before > AT_ONCE_SECONDS:
            received_at = now
            hurry()

    loop = asyncio.get_running_loop()

    def pass_on(number: int, _: object) -> None:
        if not loop.is_closed():  # not add_signal_handler: after the end of the loop a signal would kill us
            loop.call_soon_threadsafe(hurry if number == HURRY else hear)

    for number in (*STOPPING, HURRY):
        signal.signal(number, pass_on)
    atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    """On the way out: the interpreter takes its handlers back, and one more signal would count as a death."""
    for number in (*STOPPING, HURRY):
        signal.signal(number, signal.SIG_IGN)


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to stop: once `requested`, running work has `grace` seconds; once `hurried`, none."""

    grace: float
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: asyncio.Event = field(default_factory=asyncio.Event)

    def on_signals(self) -> "StopRequest":
        on_stop(self.requested.set, self.hurried.set)
        return self
