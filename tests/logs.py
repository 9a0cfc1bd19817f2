"""Logs as a program reads them."""

import json
import re
from typing import Any

RECORD = re.compile(r"(?m)^(?=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ |\{)")
TEXT = re.compile(r"\S+ (?P<level>[A-Z]+) (?P<event>\S+)")


def records(text: str) -> list[str]:
    """Each with the lines that belong to it: those that are indented, or come from elsewhere."""
    return [one for one in RECORD.split(text) if one.strip()]


def json_records(text: str) -> list[dict[str, Any]]:
    """Of the events of a log in JSON; every line must be an object."""
    return [json.loads(line) for line in text.splitlines()]


def unexpected_tracebacks(text: str, *expected: str) -> list[str]:
    """Records with a traceback that are neither the failure of a handler nor one of the expected events."""
    return [
        one for one in records(text) if "Traceback" in one and event_of(one) not in ("task_failed", *expected)
    ]


def event_of(record: str) -> str:
    if record.startswith("{"):
        return str(json.loads(record.splitlines()[0]).get("event", ""))
    known = TEXT.match(record)
    return known["event"] if known else ""
