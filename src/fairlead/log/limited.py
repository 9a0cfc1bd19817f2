"""Log lines for events that may happen thousands of times a second: one of each kind every few seconds."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.clock import monotonic
from fairlead.log.events import EventLog, Fact

MOST_KINDS = 1000


@dataclass(slots=True)
class _Kind:
    written_at: float
    suppressed: int = 0


class LimitedLog(EventLog):
    """Writes at most one line of each kind every `seconds`; the next one says how many were `suppressed`.

    The kind is the event, or the event with the fact `kind`, which is not written (never something that a
    client chooses freely: only the latest 1,000 kinds are remembered). Any thread may use it.
    """

    def __init__(self, name: str, seconds: float = 10.0) -> None:
        super().__init__(name)
        self._seconds = seconds
        self._kinds: dict[tuple[str, Fact], _Kind] = {}
        self._lock = threading.Lock()

    def write(self, level: int, event: str, facts: Mapping[str, Fact], traceback: str = "") -> None:
        if not self._logger.isEnabledFor(level):  # a line that nobody could read is not counted as suppressed
            return
        written = dict(facts)
        suppressed = self._due((event, written.pop("kind", None)))
        if suppressed is not None:
            super().write(level, event, written | {"suppressed": suppressed or None}, traceback)

    def _due(self, kind: tuple[str, Fact]) -> int | None:
        """How many were suppressed since the last line of this kind; None: suppress this one, too."""
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
