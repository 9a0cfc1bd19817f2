"""The remote control: `fairlead NOUN ...`, one file per noun, imported only when it is called."""

import logging
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from fairlead import __version__
from fairlead.errors import (
    EngineFailed,
    FairleadError,
    InvalidInput,
    InvalidSettings,
    JobFailed,
    NamespaceNotOpen,
    NotAllowed,
    StoreUnavailable,
    TaskFailed,
    UnsuitableServer,
    WrongNode,
)

DONE, FAILED, USAGE, NOT_REACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES: dict[type[FairleadError], int] = {
    InvalidInput: USAGE,
    InvalidSettings: USAGE,
    NotAllowed: USAGE,
    WrongNode: USAGE,
    EngineFailed: NOT_REACHABLE,
    NamespaceNotOpen: NOT_REACHABLE,
    StoreUnavailable: NOT_REACHABLE,
    UnsuitableServer: NOT_REACHABLE,
}

# The help is here, not in the command's file, so that `fairlead --help` imports none of them.
COMMANDS = {
    "up": (
        "fairlead.cli.up:up",
        "Start everything: engine, server, a worker for --app; --demo runs sample work.",
    ),
    "server": ("fairlead.cli.server:server", "Serve the gateway over HTTP, with its upkeep."),
    "worker": ("fairlead.cli.worker:worker", "Run the tasks of an app: fairlead worker module:attribute."),
    "submit": (
        "fairlead.cli.submit:submit",
        "Submit a task; --wait shows its progress and prints its result.",
    ),
    "task": ("fairlead.cli.task:app", "List, show, explain, watch and cancel tasks."),
    "job": ("fairlead.cli.job:app", "Submit, show, watch, resume and cancel jobs: runs of pipelines."),
    "limit": ("fairlead.cli.limit:app", "Show, set, pause and resume limits, and free leases."),
    "type": ("fairlead.cli.type:app", "List, pause and resume task types."),
    "workers": ("fairlead.cli.workers:app", "List workers, and drain them."),
    "dlq": ("fairlead.cli.dlq:app", "List, replay and purge failed and dead-lettered tasks."),
    "key": ("fairlead.cli.key:app", "Create, list, rotate and revoke API keys."),
    "audit": (
        "fairlead.cli.audit:app",
        "List what was changed by hand, and check that the list is intact.",
    ),
    "stats": ("fairlead.cli.stats:stats", "Count what waits, runs and ended recently."),
    "doctor": ("fairlead.cli.doctor:doctor", "Check every invariant of the store."),
    "open": (
        "fairlead.cli.open:open_again",
        "After a loss of data: accept what is left in the store (--new, --restored).",
    ),
    "config": ("fairlead.cli.config:app", "Check the configuration and show what is in effect."),
    "--install-completion": (
        "fairlead.cli.completion:install_completion",
        "Make the shell complete commands and options.",
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
    app.command(_path, name=_name, help=_help)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong use, 3 not reachable."""
    # Commands that keep running (server, up, worker) write a log; the others do not.
    logging.getLogger("fairlead").addHandler(logging.NullHandler())
    try:
        answer = app(arguments, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _complain(str(error), USAGE)
    except (TaskFailed, JobFailed) as error:
        from fairlead.cli.output import printable

        return _complain(printable(error.message), FAILED)  # handlers say whatever they like
    except FairleadError as error:
        return _complain(error.message, exit_code(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return answer if isinstance(answer, int) else DONE


def exit_code(error: FairleadError) -> int:
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def _complain(message: str, code: int) -> int:
    print(f"fairlead: {message}", file=sys.stderr)
    return code
