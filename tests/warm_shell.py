"""`fairlead` in a shell of a test: a small program that hands its arguments and streams to a warm process.

`python -m tests.warm_shell ADDRESS` starts the warm processes. The Python of an environment that has the
wheel runs it, so that they use what is installed there.
"""

import atexit
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path

from fairlead.store.engine import exec_tied
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[1]
MOST_BYTES = 128 * 1024  # of arguments and environment

PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    asked = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [asked], [0, 1, 2])
    pid = int(server.recv(100))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    sys.exit(int(server.recv(100)))
"""


@cache
def warm_fairlead(python: Path) -> Path:
    """A folder for the PATH, with the `fairlead` of that Python in it, until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    address, program = folder / "socket", folder / "fairlead"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-m", "tests.warm_shell", str(address)]
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    assert server.stdout and server.stdout.readline()  # it listens
    program.write_text(PROGRAM.format(python=sys.executable, address=str(address)))
    program.chmod(stat.S_IRWXU)
    return folder


def serve(address: str) -> None:
    exec_tied.die_with(os.getppid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        print("It listens.", flush=True)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_run, args=(connection,), daemon=True).start()


def _run(connection: socket.socket) -> None:
    with connection:
        asked, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
        arguments, env, cwd = json.loads(asked)
        with ExitStack() as opened:  # not for longer: the end of a pipe is seen when all have closed it
            stdin, out, err = [opened.enter_context(os.fdopen(one, "rb")) for one in descriptors]
            process = WarmProcess(arguments, env, Path(cwd), out, err, stdin=stdin, prepare=_leave_the_tests)
        try:
            connection.send(str(process.pid).encode())
            wait([connection, process.sentinel])  # the program in the shell may be killed
        finally:
            process.kill_session()
        code = process.wait_blocking(10)
        with suppress(OSError):  # nobody asks any more
            connection.send(str(code if code >= 0 else 128 - code).encode())


def _leave_the_tests() -> None:
    """A user's program cannot import them, also in a process that is forked from this one."""
    sys.path[:] = [folder for folder in sys.path if folder not in ("", str(ROOT))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]


if __name__ == "__main__":
    serve(sys.argv[1])
