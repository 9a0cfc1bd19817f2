"""What this machine remembers of a namespace between two runs, so that a loss is noticed after a restart too.

Of the embedded server it is beside the data, in `<data>/seen`; of a server of your own, in the state folder.
"""

import contextlib
import hashlib
import math
import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.settings import EngineSettings
from fairlead.settings.engine_urls import is_found_by_asking
from fairlead.settings.folders import default_state_folder
from fairlead.store.membership import Membership, began

BEHIND_SECONDS = 2.0

log = EventLog("fairlead.store")


class Seen(msgspec.Struct, frozen=True):
    """Whose file it is, for people; and what was seen there."""

    where: str
    namespace: str
    epoch: str
    beat: int


class Remembered:
    """The file for one namespace at one address. A folder that cannot be written to is only a warning."""

    def __init__(self, path: Path, where: str, membership: Membership) -> None:
        self._path = path
        self._where = where
        self._membership = membership
        self._written: tuple[str, int] = ("", 0)
        self._before = 0  # the beat of a while ago
        self._looked_at = -math.inf
        self._complained = False

    @classmethod
    def of_data(cls, data: Path, membership: Membership) -> "Remembered":
        return cls(data / "seen" / f"{membership.namespace}.json", str(data), membership)

    @classmethod
    def of_server(cls, engine: EngineSettings, membership: Membership) -> "Remembered":
        assert engine.url
        url = urlsplit(engine.url)
        if is_found_by_asking(engine.url):  # neither user nor password
            where = f"{url.netloc.rpartition('@')[2]}{url.path}"
        else:
            where = f"{url.hostname or ''}:{url.port or ''}{url.path}?{url.query}"
        name = hashlib.sha256(f"{where} {membership.namespace}".encode()).hexdigest()[:24]
        folder = Path(engine.state).expanduser() if engine.state else default_state_folder(os.environ)
        return cls(folder / f"{name}.json", where.rstrip("?"), membership)

    def recall(self) -> None:
        """Reads what was seen before this process began."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            seen = msgspec.json.decode(self._path.read_bytes(), type=Seen)
            self._membership.epoch, self._membership.beat = seen.epoch, seen.beat
            self._written = seen.epoch, seen.beat

    def keep(self) -> None:
        """Writes what is known if it is more than what was written; may be called at any rate.

        The beat is that of a while ago: with `durability = "everysec"` a crash of the machine may take the
        last second with it, as promised, which is no loss that anybody has to accept.
        """
        epoch, beat = self._membership.known
        is_new = epoch != self._written[0]
        if self._membership.problem or not epoch or not (is_new or self._is_time()):
            return
        before, self._before = max(self._before, began(epoch)), beat
        if (epoch, before) == self._written:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(Seen(self._where, self._membership.namespace, epoch, before))
        except OSError as problem:
            if not self._complained:
                log.warning("not_remembered", file=str(self._path), problem=str(problem))
            self._complained = True
            return
        self._written = epoch, before

    def _is_time(self) -> bool:
        now = monotonic()
        if now - self._looked_at < BEHIND_SECONDS:
            return False
        self._looked_at = now
        return True

    def _write(self, seen: Seen) -> None:
        """Whole or not at all: another process may read it, or write it too."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            other = msgspec.json.decode(self._path.read_bytes(), type=Seen)
            if other.epoch == seen.epoch and other.beat > seen.beat:
                return
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".seen-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(seen) + b"\n")
            Path(name).replace(self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
