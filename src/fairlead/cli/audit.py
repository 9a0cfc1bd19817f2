"""`fairlead audit`: what was changed by hand, by whom and why."""

import getpass
import os
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairlead.backend import Backend
from fairlead.cli.options import DEFAULTS, Options, open_store
from fairlead.cli.output import print_json, print_list
from fairlead.store.store import Store
from fairlead.times import time_text

app = App(name="audit", help="List what was changed by hand, and check that the list is intact.")

COLUMNS = {
    "entry": "seq",
    "at": "at",
    "by": "actor",
    "act": "act",
    "subject": "subject",
    "before": "before",
    "after": "after",
    "reason": "reason",
}


@app.command(name="list")
async def list_entries(
    *,
    limit: Annotated[int, Parameter(help="Maximum number of entries, the latest first.")] = 50,
    options: Options = DEFAULTS,
) -> None:
    """List what was changed by hand, the latest first."""
    async with open_store(options) as store:
        entries = [asdict(entry) | {"at": time_text(entry.at)} for entry in await store.audit.list(limit)]
    print_list(options.output, {"entries": entries}, "entries", COLUMNS)


@app.command
async def verify(*, options: Options = DEFAULTS) -> int:
    """Check that no entry was edited, added or removed; exit code 1 if one was."""
    async with open_store(options) as store:
        problems = await store.audit.verify()
        # An entry that cannot be read is among the problems, and cannot be listed.
        last = [] if problems else await store.audit.list(1)
    if options.output == "json":
        print_json({"problems": problems, "last_hash": last[0].hash if last else None})
    elif last:
        print(f"Every entry up to {last[0].seq} is as it was written. Hash of the last: {last[0].hash}")
    else:
        print("\n".join(problems) or "The audit is empty.")
    return 1 if problems else 0


async def note(backend: Backend, act: str, subject: str, before: Any, after: Any) -> None:
    """Records what a command changed. A gateway does it itself, under the name of the key."""
    if isinstance(backend, Store):
        await backend.audit.record(f"{_user()} (command line)", act, subject, before, after)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container a user may have a number only
        return f"uid {os.getuid()}"
