"""Logging of Fairlead's own processes; a program that uses Fairlead sets up its logging itself."""

import logging
import os
import sys
from collections.abc import Mapping

import msgspec

from fairlead.log.formats import JsonFormat, TextFormat
from fairlead.settings import LogSettings

LEVEL, FORMAT = "FAIRLEAD_LOG__LEVEL", "FAIRLEAD_LOG__FORMAT"

#: Libraries that write what goes over the wire: addresses, headers, messages, with whatever is in them.
#: Other libraries follow the level of the settings.
LEAST_LEVELS = {
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "hpack": logging.WARNING,
    "websockets": logging.WARNING,
}


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
    for name, least in LEAST_LEVELS.items():
        logging.getLogger(name).setLevel(max(level, least))


def inherited_settings(env: Mapping[str, str] = os.environ) -> LogSettings:
    """The settings of the process that started this one, which has reported any error in them."""
    try:
        known = {"level": env.get(LEVEL), "format": env.get(FORMAT)}
        return msgspec.convert({name: value for name, value in known.items() if value}, LogSettings)
    except msgspec.ValidationError:
        return LogSettings()
