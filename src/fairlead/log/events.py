"""Log lines as events: a name, facts, and an optional traceback."""

import json
import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.clock import monotonic
from fairlead.log.secrets import redacted
from fairlead.log.tracebacks import readable

Fact = str | int | float | None
PLAIN = re.compile(r"[^\s\"'=\\]+")  # a value that needs no quotes
MOST_VALUE = 1000  # characters of one value
MOST_KINDS = 1000  # that a limited log remembers


class EventLog:
    """`log.warning("lease_lost", task=..., fence=...)` is written as `lease_lost task=... fence=...`.

    Facts that are None are left out. The record carries the event, its facts and the traceback as well
    (`record.event`, `record.facts`, `record.traceback`), for formats that keep them apart.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, /, *, traceback: str = "", **facts: Fact) -> None:
        self.write(logging.INFO, event, facts, traceback)

    def warning(self, event: str, /, *, traceback: str = "", **facts: Fact) -> None:
        self.write(logging.WARNING, event, facts, traceback)

    def error(self, event: str, /, *, traceback: str = "", **facts: Fact) -> None:
        self.write(logging.ERROR, event, facts, traceback)

    def write(self, level: int, event: str, facts: Mapping[str, Fact], traceback: str = "") -> None:
        if self._logger.isEnabledFor(level):
            known = {name: _written(fact) for name, fact in facts.items() if fact is not None}
            traceback = redacted(readable(traceback))
            self._logger.log(
                level,
                "%s",
                "\n".join(filter(None, (line_of(event, known), traceback.rstrip()))),
                extra={"event": event, "facts": known, "traceback": traceback},
                stacklevel=3,  # the caller of info, warning, ...
            )


@dataclass(slots=True)
class _Kind:
    written_at: float
    suppressed: int = 0


class LimitedLog(EventLog):
    """For events that may happen thousands of times a second: writes one of each kind every `seconds`.

    The next one says how many were `suppressed`. The kind is the event, or the event with the fact `kind`,
    which is not written (never something that a client chooses freely: only the latest 1,000 kinds are
    remembered). Any thread may use it.
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


def line_of(event: str, facts: Mapping[str, Fact]) -> str:
    """The event with its facts; values with spaces or control characters are quoted, as in JSON."""
    return " ".join([event, *(f"{name}={_value(fact)}" for name, fact in facts.items())])


def _written(fact: Fact) -> Fact:
    if not isinstance(fact, str):
        return fact
    text = redacted(readable(fact[: 2 * MOST_VALUE]))
    return text if len(text) <= MOST_VALUE else text[:MOST_VALUE] + "..."


def _value(fact: Fact) -> str:
    # Quoted: text that others chose (a type, a name, a message) cannot end the line or imitate a fact.
    text = f"{fact:g}" if isinstance(fact, float) else str(fact)
    if PLAIN.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
