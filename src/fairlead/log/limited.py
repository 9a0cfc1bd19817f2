"""Log lines of what may happen thousands of times a second: one for each kind every few seconds."""

import logging
import threading
from dataclasses import dataclass

from fairlead.clock import monotonic
from fairlead.log.events import EventLog, Fact

MOST_KINDS = 1000


@dataclass(slots=True)
class _Kind:
    written_at: float
    suppressed: int = 0


class LimitedLog:
    """Writes at most one line of each kind every `seconds`; the next one says how many were `suppressed`.

    The kind is the event, or the event with what `kind` says (never what a client chooses freely: of the
    kinds only the latest 1,000 are remembered). Any thread may use it.
    """

    def __init__(self, log: EventLog, seconds: float = 10.0) -> None:
        self._log = log
        self._seconds = seconds
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._lock = threading.Lock()

    def info(self, event: str, /, *, kind: str = "", traceback: str = "", **facts: Fact) -> None:
        self._write(logging.INFO, event, kind, facts, traceback)

    def warning(self, event: str, /, *, kind: str = "", traceback: str = "", **facts: Fact) -> None:
        self._write(logging.WARNING, event, kind, facts, traceback)

    def error(self, event: str, /, *, kind: str = "", traceback: str = "", **facts: Fact) -> None:
        self._write(logging.ERROR, event, kind, facts, traceback)

    def _write(self, level: int, event: str, kind: str, facts: dict[str, Fact], traceback: str) -> None:
        if not self._log.is_enabled(level):  # what nobody could read is not counted as suppressed
            return
        suppressed = self._due((event, kind))
        if suppressed is not None:
            self._log.write(level, event, {**facts, "suppressed": suppressed or None}, traceback)

    def _due(self, kind: tuple[str, str]) -> int | None:
        """How many were suppressed since the last line of this kind; None: this one is, too."""
        with self._lock:
            now, known = monotonic(), self._kinds.get(kind)
            if known and now - known.written_at < self._seconds:
                known.suppressed += 1
                return None
            self._kinds.pop(kind, None)
            self._kinds[kind] = _Kind(now)  # the latest is the last
            if len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
            return known.suppressed if known else 0
