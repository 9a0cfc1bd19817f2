"""Runs Asymptote on source that nobody has read, where it can harm nothing but itself.

Asymptote's own `-safe` is no border: source may name any program as `settings.gs` or as TeX, which then runs,
and `include` and `input` open any file and any URL. The border is bubblewrap: namespaces without a network,
without other processes, without files except programs and fonts, and limits of the kernel on what it uses.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["svg", "png"]

MIB = 1 << 20
MOST_PICTURE = 150_000  # bytes: as base64, and with what is said as JSON, a result of less than 256 KiB
MOST_SAID = 10_000
MOST_ANSWERED = 100_000  # of a conversation
PIECE = 4096  # two of them, as JSON, are a frame at most

#: Beside /usr: fonts of TeX and Ghostscript, and its compiled formats. No passwords, no home folders.
READABLE = (
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ghostscript",
    "/etc/texmf",
    "/var/lib/ghostscript",
    "/var/lib/texmf",
)
#: /bin is a link to /usr/bin on every current distribution.
LINKS = ("bin", "lib", "lib64")
NOBODY = 65534

#: Of bubblewrap itself, too: the program can read it in /proc, and that of the worker may have a key.
ENVIRONMENT = {"PATH": "/usr/bin", "HOME": "/work", "TMPDIR": "/work"}

#: Writes line by line, so that what it wrote is not lost when it is ended.
ASY = "stdbuf -oL asy -noV -noglobalread"

WHOLE = "-"
#: One statement per line, answered at once; mistakes are among the answers, and it reads on after them.
LINES = "-quiet -inpipe=0"

#: What is drawn goes to a file, what the source writes to stderr: stdout carries the picture alone.
DRAW = ASY + " -f {0} -o picture {1} >&2 && if [ -f picture.{0} ]; then cat picture.{0}; fi"
CONVERSE = f"exec {ASY} {LINES} 2>&1"


@dataclass(frozen=True, slots=True)
class Limits:
    cpu_seconds: int = 30  # of each process; the time on the clock is up to the caller
    processes: int = 16
    memory_bytes: int = 512 * MIB  # of each process
    file_bytes: int = 8 * MIB
    folder_bytes: int = 32 * MIB  # all files together; they are in memory and vanish with the run


@dataclass(frozen=True, slots=True)
class Drawn:
    picture: bytes  # empty: there is none
    said: str  # what the source wrote, and errors
    stopped: str  # why it was ended, or empty


def command(limits: Limits, *program: str) -> list[str]:
    """The program within the border."""
    # Root is exempt from the limit on processes: a worker that runs as root runs this as nobody.
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    names = [name for name in LINKS if Path("/", name).is_symlink()]
    return [
        *(as_nobody if os.geteuid() == 0 else []),
        # `die-with-parent`: nothing survives a worker that is killed
        *("bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"),
        *("--ro-bind", "/usr", "/usr"),
        *(word for name in names for word in ("--symlink", f"usr/{name}", f"/{name}")),
        *(word for path in READABLE for word in ("--ro-bind-try", path, path)),
        *("--proc", "/proc", "--dev", "/dev", "--size", str(limits.folder_bytes), "--tmpfs", "/work"),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work", "--"),
        # set inside, where the processes of this run alone are counted
        *("prlimit", f"--cpu={limits.cpu_seconds}", f"--nproc={limits.processes}", "--nofile=64", "--core=0"),
        *(f"--as={limits.memory_bytes}", f"--fsize={limits.file_bytes}", "--"),
        *program,
    ]


class Run:
    """A program within the border, and what is read of it, which is bounded."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.stopped = ""

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        end(self._process)

    async def drawn(self, source: str) -> Drawn:
        process = self._process
        assert process.stdin and process.stdout and process.stderr
        _, picture, said = await asyncio.gather(
            self._write(process.stdin, source.encode()),
            self._read(process.stdout, MOST_PICTURE, "the picture"),
            self._read(process.stderr, MOST_SAID, "what it writes"),
        )
        status = await process.wait()
        return Drawn(b"" if self.stopped or status else picture, said.decode(errors="replace"), self.stopped)

    async def tell(self, line: str) -> None:
        stream = self._process.stdin
        assert stream
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended, and so will its answers
            stream.write(" ".join(line.splitlines()).encode() + b"\n")
            await stream.drain()

    async def answers(self) -> AsyncIterator[str]:
        """What it writes until it ends, in whole lines unless they are long."""
        stream, kept, count = self._process.stdout, b"", 0
        assert stream
        while piece := await stream.read(PIECE):
            count += len(piece)
            if count > MOST_ANSWERED:
                self.stop(f"it wrote more than {MOST_ANSWERED // 1000} kB")
                return
            kept += piece
            cut = kept.rfind(b"\n") + 1 or (len(kept) if len(kept) > PIECE else 0)
            if cut:
                yield kept[:cut].decode(errors="replace")
                kept = kept[cut:]
        if kept:
            yield kept.decode(errors="replace")

    async def _write(self, stream: asyncio.StreamWriter, text: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended before it read everything
            stream.write(text)
            await stream.drain()
        stream.close()

    async def _read(self, stream: asyncio.StreamReader, most: int, what: str) -> bytes:
        kept = b""
        while piece := await stream.read(most):
            kept = (kept + piece)[: most + 1]
            if len(kept) > most:
                self.stop(f"{what} is more than {most // 1000} kB")
        return kept[:most]


@asynccontextmanager
async def running(limits: Limits, *program: str) -> AsyncIterator[Run]:
    words = command(limits, *program)
    process = await create_subprocess_exec(
        *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=ENVIRONMENT, start_new_session=True
    )
    try:
        yield Run(process)
    finally:
        end(process)
        await process.wait()


def end(process: Process) -> None:
    """With all that it started: their namespace ends with its first process, which is in this group.

    To kill bubblewrap alone leaves that process behind if it has not yet begun to watch its parent.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@asynccontextmanager
async def drawing(kind: Kind, limits: Limits, *, line_by_line: bool = False) -> AsyncIterator[Run]:
    """Asymptote, waiting for the source of a picture.

    `line_by_line`: as in a conversation, so lines with a mistake have no effect.
    """
    draw = DRAW.format(kind, LINES if line_by_line else WHOLE)
    async with running(limits, "sh", "-c", draw) as run:
        yield run


@asynccontextmanager
async def conversing(limits: Limits) -> AsyncIterator[Run]:
    """Asymptote, waiting for the first line."""
    async with running(limits, "sh", "-c", CONVERSE) as run:
        yield run
