"""`fairlead audit`: what was changed by hand, by whom and why."""

import getpass
import os
from typing import Annotated, Any

from cyclopts import App, Parameter
from msgspec import to_builtins

from fairlead.backend import Backend
from fairlead.checks import check_units
from fairlead.cli.listing import LIST, ListOptions, gathered, show_all
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_json
from fairlead.cli.table import Columns
from fairlead.model.audit import AuditEntry
from fairlead.shapes.audit import AuditEntryAnswer
from fairlead.store.store import Store

app = App(name="audit", help="List what was changed by hand, and check that the list is intact.")

COLUMNS: Columns = {
    "entry": "seq",
    "at": "at",
    "by": "actor",
    "act": "act",
    "subject": "subject",
    "before": "before",
    "after": "after",
    "reason": "reason",
}
LEAST_USED = ("before", "after", "reason", "entry", "by")
MOST_PER_PAGE = 1_000


@app.command(name="list")
async def list_entries(
    *,
    limit: Annotated[int, Parameter(help="Maximum number of entries, the latest first.")] = 50,
    options: ListOptions = LIST,
) -> None:
    """List what was changed by hand, the latest first."""
    check_units("--limit", limit)

    async def read(backend: Backend) -> list[AuditEntry]:
        async def read_page(count: int, cursor: str) -> tuple[list[AuditEntry], str]:
            page = await backend.audit.page(min(count, MOST_PER_PAGE), cursor)
            return page.entries, page.next_cursor

        return (await gathered(read_page, limit))[0]

    await show_all(options, "entries", read, AuditEntryAnswer.from_value, COLUMNS, LEAST_USED)


@app.command
async def verify(*, options: Options = DEFAULTS) -> int:
    """Check that no entry was edited, added or removed; exit code 1 if one was."""
    async with open_backend(options) as backend:
        problems = await backend.audit.verify()
        # An entry that cannot be read is among the problems, and cannot be listed.
        last = [] if problems else (await backend.audit.page(1)).entries
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
        facts = to_builtins(before), to_builtins(after)
        await backend.audit.record(f"{_user()} (command line)", act, subject, *facts)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container a user may have a number only
        return f"uid {os.getuid()}"
