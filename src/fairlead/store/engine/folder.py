"""Where the embedded server keeps its files, its socket and the lock that says it is alive."""

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from fairlead.errors import EngineFailed, InvalidSettings

# The kernel's limit for a socket's path, less the closing zero: 108 bytes on Linux, 104 on macOS.
SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
LOG_LINES_SHOWN = 12


class EngineFolder:
    """`<data>/engine`: the append-only file, log, pidfile, lock, and the socket or a link to it."""

    def __init__(self, data: Path) -> None:
        self.path = data.expanduser().absolute() / "engine"
        self.lock = self.path / "lock"
        self.log = self.path / "log"
        self.pidfile = self.path / "pid"
        self.socket_link = self.path / "socket"
        self.truncated = self.path / "truncated"  # since when an operator has to look at the data

    def prepare(self) -> None:
        """Make the folder, readable by its owner only."""
        try:
            # Only a data folder that we make is closed to others; one that was there may hold more than ours.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private_folder(self.path)
        except OSError as error:
            problem = f"cannot use the data folder {self.path.parent} ({error.strerror}): choose another"
            if isinstance(error, FileExistsError | NotADirectoryError):  # a file: it will never be a folder
                raise InvalidSettings(problem) from None
            raise EngineFailed(problem) from None

    def take_lock(self) -> int | None:
        """The lock as an open file, or None while a server lives (or starts) on this folder.

        The file is handed down to the server, so the kernel frees the lock when the last of starter and
        server is gone, by whatever death. No process number is ever trusted: numbers are used again, and two
        containers that share a folder do not see each other's.
        """
        import fcntl  # not on Windows, where the engine is refused before this

        file = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # flock, not lockf: it belongs to the open file, so that the server inherits it and two threads
            # exclude each other.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        except OSError as error:
            os.close(file)
            raise EngineFailed(
                f"cannot lock {self.lock}: {error}; use a data folder on a local disk"
            ) from error
        return file

    @property
    def socket(self) -> Path:
        """Where a running server listens; a link says so when a path inside the folder would be too long."""
        try:
            return self.socket_link.readlink()
        except OSError:
            return self.socket_link

    def choose_socket(self) -> Path:
        """Remove a dead server's socket and return where the next one listens; the lock must be held."""
        self.remove_socket()
        if len(os.fsencode(self.socket_link)) <= SOCKET_PATH_BYTES:
            return self.socket_link
        folder = Path(tempfile.gettempdir()) / f"fairlead-{os.geteuid()}"
        name = hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:16]
        try:
            make_private_folder(folder)
        except OSError as error:
            raise EngineFailed(
                f"the data folder's path is too long for a socket, and {folder} cannot be used: {error}; "
                "choose a shorter data folder"
            ) from error
        socket = folder / f"{name}.sock"
        if len(os.fsencode(socket)) > SOCKET_PATH_BYTES:
            raise EngineFailed(f"no path short enough for a socket: neither {self.socket_link} nor {socket}")
        # Other processes follow the link: their temporary folder may be another one.
        self.socket_link.symlink_to(socket)
        return socket

    def remove_socket(self) -> None:
        """Nobody can connect from here on."""
        with contextlib.suppress(OSError):
            self.socket.unlink(missing_ok=True)
            self.socket_link.unlink(missing_ok=True)

    def log_size(self) -> int:
        try:
            return self.log.stat().st_size
        except OSError:
            return 0

    def end_of_log(self, since: int = 0) -> str:
        """What the server's log ends with, from the byte `since`."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(since, self.log_size() - 8192))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def last_log_lines(self, since: int = 0) -> str:
        """The same as an indented block for a message."""
        lines = self.end_of_log(since).splitlines()
        return "\n".join(f"    {line}" for line in lines[-LOG_LINES_SHOWN:]) or "    (nothing)"

    def note_truncation(self) -> None:
        """Until an operator acknowledges it; noted by a file, because the next server finds nothing wrong."""
        with contextlib.suppress(OSError):  # the disk may be full
            self.truncated.touch(0o600)

    def acknowledge_truncation(self) -> bool:
        """Whether there was something to acknowledge."""
        was_there = self.truncated.exists()
        self.truncated.unlink(missing_ok=True)
        return was_there


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner can enter, or make an existing one private."""
    path.mkdir(mode=0o700, exist_ok=True)
    # lstat: in a shared temporary folder anybody could have put a link there first.
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to somebody else")
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)
