"""The remote control: `fairlead NOUN ...`, one file per noun, imported only when it is called."""

import errno
import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from cyclopts import App, CycloptsError

from fairlead import __version__, errors

COMPLETE = "--complete"  # by which the scripts of the shells ask for values
DONE, FAILED, USAGE, NOT_REACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # what stdout may be

EXIT_CODES: dict[type[errors.FairleadError], int] = {
    errors.InvalidInput: USAGE,
    errors.InvalidSettings: USAGE,
    errors.NotAllowed: USAGE,
    errors.RestoreRefused: USAGE,
    errors.UnknownNamespace: USAGE,
    errors.WrongNode: USAGE,
    errors.EngineFailed: NOT_REACHABLE,
    errors.NamespaceNotOpen: NOT_REACHABLE,
    errors.StoreUnavailable: NOT_REACHABLE,
    errors.UnsuitableServer: NOT_REACHABLE,
}

# Where each command is, and its help: here, so that `fairlead --help` imports none of them.
COMMANDS = {
    "up": ("up:up", "Start everything: engine, server, a worker for --app; --demo runs sample work."),
    "server": ("server:server", "Serve the gateway over HTTP, with its upkeep."),
    "worker": ("worker:worker", "Run the tasks of an app: fairlead worker module:attribute."),
    "submit": ("submit:submit", "Submit a task; --wait shows its progress and prints its result."),
    "task": ("task:app", "List, show, explain, watch and cancel tasks, and show their history."),
    "blob": ("blob:app", "Upload and download files of tasks."),
    "job": ("job:app", "Submit, list, show, explain, watch, resume and cancel jobs: runs of pipelines."),
    "limit": ("limit:app", "Show, set, pause, resume and delete limits, and free leases."),
    "concurrency": (
        "concurrency:app",
        "Show, set and free slots of groups, in an object store or of Fairlead.",
    ),
    "type": ("type:app", "List, pause and resume task types."),
    "cron": ("cron:app", "List periodic tasks."),
    "workers": ("workers:app", "List workers, drain them, and expire dead ones."),
    "dlq": ("dlq:app", "List, replay and purge failed and dead-lettered tasks."),
    "key": ("key:app", "Create, list, rotate and revoke API keys."),
    "history": ("history:app", "Show, migrate and prune the history, or record it in a process of its own."),
    "audit": ("audit:app", "List what was changed by hand, and check that the list is intact."),
    "simulate": ("simulate:simulate", "Replay a trace of tasks under these settings, and measure the waits."),
    "forecast": ("forecast:forecast", "Show who holds each limit until when, and who starts next."),
    "stats": ("stats:stats", "Count what waits, runs and ended recently."),
    "top": ("top:top", "Show what waits, each limit and who is next, and the workers; refreshed in place."),
    "doctor": ("doctor:doctor", "Check every invariant of the store."),
    "open": (
        "open:open_again",
        "After a loss of data: accept what is left in the store (--new, --restored).",
    ),
    "backup": ("backup:backup", "Copy the embedded engine and the history to a folder, while they work."),
    "restore": ("restore:restore", "After a loss of data: rebuild what the store has lost from the history."),
    "config": ("config:app", "Write a sample configuration, check it, and show what is in effect."),
    "--install-completion": (
        "completion:install_completion",
        "Make the shell complete commands, options and values.",
    ),
}

app = App(
    name="fairlead",
    help="A job gateway for scarce compute.",
    version=__version__,
    # Help is plain text: brackets and backticks in it mean themselves.
    help_format="plaintext",
)
for _name, (_path, _help) in COMMANDS.items():
    app.command(f"fairlead.cli.{_path}", name=_name, help=_help)


def main() -> None:
    """The console script."""
    _prepare_streams()
    if sys.argv[1:2] == [COMPLETE]:
        from fairlead.cli.candidates import complete

        complete(" ".join(sys.argv[2:]))
    sys.exit(run(sys.argv[1:]))


def _prepare_streams() -> None:
    """A stream may be closed, and may have an encoding that lacks characters of the answer."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong use, 3 not reachable."""
    # Commands that keep running (server, up, worker) write a log; the others do not.
    logging.getLogger("fairlead").addHandler(logging.NullHandler())
    try:
        answer = app(arguments, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _complain(str(error), USAGE)
    except errors.FairleadError as error:
        return _refused(error)
    except ExceptionGroup as group:  # of work that was done side by side
        ours, others = group.split(errors.FairleadError)
        if ours is None or others is not None:
            raise
        return _refused(_first(ours))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up(sys.stdout)  # the reader (`| head`) has seen enough
        return DONE
    except OSError as problem:
        if problem.errno not in UNWRITABLE:
            raise
        _give_up(sys.stdout)
        return _complain(f"cannot write the answer: {problem.strerror}", FAILED)
    return answer if isinstance(answer, int) else DONE


def _refused(error: errors.FairleadError) -> int:
    if isinstance(error, errors.TaskFailed | errors.JobFailed):
        from fairlead.cli.output import printable

        return _complain(printable(error.message), FAILED)  # handlers say whatever they like
    return _complain(error.message, exit_code(error))


def _first(group: ExceptionGroup[errors.FairleadError]) -> errors.FairleadError:
    one = group.exceptions[0]
    return _first(one) if isinstance(one, ExceptionGroup) else one


def _give_up(stream: TextIO) -> None:
    """Python would complain again when it closes a stream that cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_code(error: errors.FairleadError) -> int:
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def _complain(message: str, code: int) -> int:
    try:
        print(f"fairlead: {message}", file=sys.stderr, flush=True)
    except OSError:  # nobody can read it: the exit code is left
        _give_up(sys.stderr)
    return code
