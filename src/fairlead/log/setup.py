"""Logging of Fairlead's own processes, as text for people or JSON for programs.

A program that uses Fairlead sets up its logging itself.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.log.secrets import redacted
from fairlead.log.tracebacks import readable
from fairlead.settings import LogSettings
from fairlead.times import time_text


class TextFormat(logging.Formatter):
    """`2026-01-31T12:00:00.000Z WARNING lease_lost task=... fence=...`

    Further lines (a traceback, say) are indented: a line that begins with a time begins a record.
    """

    def format(self, record: logging.LogRecord) -> str:
        words = redacted("\n".join(filter(None, (record.getMessage(), _exception(self, record)))))
        # lines of other libraries are not our events: the name of the logger marks them
        name = "" if hasattr(record, "event") or _is_ours(record) else f"{record.name}: "
        return f"{_time(record)} {record.levelname} {name}" + _printable(words).replace("\n", "\n    ")


class JsonFormat(logging.Formatter):
    """One object on one line: `time`, `level`, `logger`, then `event` with its facts, or `message`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        event = getattr(record, "event", None)
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **({"event": event} if event else {"message": redacted(readable(record.getMessage()))}),
        }
        line |= {name: fact for name, fact in facts.items() if name not in line}
        if traceback := getattr(record, "traceback", "") or _exception(self, record):
            line["traceback"] = redacted(readable(traceback))
        return msgspec.json.encode(line).decode()


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name == "fairlead" or record.name.startswith("fairlead.")


def _printable(words: str) -> str:
    """Escapes control characters except line ends and tabs: a terminal would obey them."""
    if words.isprintable():
        return words
    return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in words)


def _time(record: logging.LogRecord) -> str:
    return time_text(int(record.created * 1000))


def _exception(format: logging.Formatter, record: logging.LogRecord) -> str:
    return format.formatException(record.exc_info) if record.exc_info and record.exc_info[1] else ""


LEVEL, FORMAT = "FAIRLEAD_LOG__LEVEL", "FAIRLEAD_LOG__FORMAT"

#: Libraries that log what goes over the wire: addresses, headers, messages, with whatever is in them. Only
#: their warnings and errors are written; other libraries follow the level of the settings.
QUIET = ("httpx", "httpcore", "hpack", "websockets")


def set_up_logging(settings: LogSettings) -> None:
    """Call it once, at the start of a process. Child processes inherit the settings by their environment."""
    os.environ[LEVEL], os.environ[FORMAT] = settings.level, settings.format
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormat() if settings.format == "json" else TextFormat())
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
        root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def inherited_settings(env: Mapping[str, str] = os.environ) -> LogSettings:
    """The settings of the process that started this one, which has reported any error in them."""
    try:
        known = {"level": env.get(LEVEL), "format": env.get(FORMAT)}
        return msgspec.convert({name: value for name, value in known.items() if value}, LogSettings)
    except msgspec.ValidationError:
        return LogSettings()
