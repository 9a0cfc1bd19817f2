"""What is wrong with the embedded server that it cannot say itself, because it has ended or started since."""

import math
import re
from datetime import UTC, datetime

from fairlead.clock import monotonic
from fairlead.errors import EngineFailed
from fairlead.log.events import EventLog
from fairlead.store.engine.folder import EngineFolder
from fairlead.store.engine.state import DISK

FAILED, TRUNCATED = "engine_failed", "engine_data_truncated"
CUT_OFF = (
    "The append-only file of the embedded server ended in the middle of an entry, and its end was cut off "
    "({since}). Run `fairlead doctor`, restore a backup if work is missing, then run "
    "`fairlead doctor --acknowledge`."
)
SETTLED_SECONDS = 10.0  # a server that has run this long can write: the caretaker writes every second
#: In the log of Redis and of Valkey. A server that syncs before it answers ends when it cannot write.
STARTED = re.compile(r"Server initialized")
CANNOT_WRITE = re.compile(r"(?:Error|Short write while) writing to the AOF file|No space left on device")
CANNOT_GO_ON = re.compile(r"Can't recover from AOF write error|No space left on device")
CUT = re.compile(r"Truncating the AOF|AOF .*loaded anyway because aof-load-truncated is enabled")

log = EventLog("fairlead.store")


class EngineHealth:
    def __init__(self, folder: EngineFolder) -> None:
        self.folder = folder
        self._reason = self._failure = ""
        self._failed_at = -math.inf

    def look(self) -> None:
        """Before the server is opened again: why it ended, if it could not write."""
        failure = disk_failure(self.folder.end_of_log())
        if failure is None:
            return
        problem = (
            f"The embedded server ended because it could not write to its disk ({failure}): free disk space "
            "where the data folder is. It is started again by itself."
        )
        self._note(DISK, "engine_ended", problem)

    def does_not_start(self, problem: EngineFailed) -> None:
        """It is tried again and again: somebody may repair it."""
        self._note(FAILED, "engine_failed", problem.message)

    def _note(self, reason: str, event: str, problem: str) -> None:
        if not self._has_failed_lately() or self._reason != reason:  # once, not at each of many attempts
            log.error(event, folder=str(self.folder.path), problem=problem)
        self._reason, self._failure, self._failed_at = reason, problem, monotonic()

    def problems(self) -> dict[str, str]:
        """Reason -> what is wrong and what to do."""
        found: dict[str, str] = {}
        if self._has_failed_lately():
            found[self._reason] = self._failure
        if since := self._truncated_at():
            found[TRUNCATED] = CUT_OFF.format(since=since)
        return found

    def _has_failed_lately(self) -> bool:
        return monotonic() - self._failed_at < SETTLED_SECONDS

    def _truncated_at(self) -> str | None:
        try:
            noted = self.folder.truncated.stat().st_mtime
        except OSError:
            return None
        return datetime.fromtimestamp(noted, UTC).isoformat(timespec="seconds")


def disk_failure(log: str) -> str | None:
    """Why the latest run of the server ended, if it could not write to its disk."""
    run = log[max((match.end() for match in STARTED.finditer(log)), default=0) :]
    if not CANNOT_GO_ON.search(run):
        return None
    said = [line for line in run.splitlines() if CANNOT_WRITE.search(line)]
    return _words(said[-1]) if said else "append-only file"


def was_truncated(log: str) -> bool:
    """Whether the server found its append-only file broken off in the middle of an entry, and cut it."""
    return CUT.search(log) is not None


def _words(line: str) -> str:
    """Without the number of the process and the time: `13:M 16 Nov 2026 14:43:14.925 # words`."""
    return line.partition(" # ")[2] or line
