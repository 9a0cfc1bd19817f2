"""What the embedded server writes to its own log, and its operator has to know."""

import re

#: In the log of Redis and of Valkey. A server that syncs before it answers ends when it cannot write.
STARTED = re.compile(r"Server initialized")
CANNOT_WRITE = re.compile(r"(?:Error|Short write while) writing to the AOF file|No space left on device")
CANNOT_GO_ON = re.compile(r"Can't recover from AOF write error|No space left on device")
TRUNCATED = re.compile(r"Truncating the AOF|AOF .*loaded anyway because aof-load-truncated is enabled")


def disk_failure(log: str) -> str | None:
    """Why the latest run of the server ended, if it could not write to its disk."""
    run = log[max((match.end() for match in STARTED.finditer(log)), default=0) :]
    if not CANNOT_GO_ON.search(run):
        return None
    said = [line for line in run.splitlines() if CANNOT_WRITE.search(line)]
    return _words(said[-1]) if said else "append-only file"


def was_truncated(log: str) -> bool:
    """Whether the server found its append-only file broken off in the middle of an entry, and cut it."""
    return TRUNCATED.search(log) is not None


def _words(line: str) -> str:
    """Without the number of the process and the time: `13:M 16 Nov 2026 14:43:14.925 # words`."""
    return line.partition(" # ")[2] or line
