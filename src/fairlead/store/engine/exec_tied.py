"""Become another program that dies with the process that started us: `exec_tied.py PARENT PROGRAM ...`.

Linux only, and run as a script by a bare interpreter, hence no imports of Fairlead. A separate
program, not a hook between fork and exec: that would run Python in a copy of a process without its threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> bool:
    """Linux: this process is killed when `parent` ends. False: it has ended already."""
    # SIGKILL, not SIGTERM: after SIGTERM a server keeps answering for a tenth of a second, and a
    # restarted Fairlead would adopt it. Nothing acknowledged is lost: a reply follows its write to the file.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the line above; then no signal would ever come.
    return os.getppid() == parent


def main() -> None:
    parent, program, *arguments = sys.argv[1:]
    if die_with(int(parent)):
        os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
