"""`fairlead audit`: what was changed by hand, by whom and why."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli.options import BackendOptions, Output, open_store
from fairlead.cli.output import compact, print_json, print_table
from fairlead.store.access.audit import AuditEntry
from fairlead.times import time_text

app = App(name="audit", help="List what was changed by hand, and check that the list is intact.")


@app.command(name="list")
async def list_entries(
    *,
    limit: Annotated[int, Parameter(help="Maximum number of entries, the latest first.")] = 50,
    options: BackendOptions | None = None,
    output: Output = "table",
) -> None:
    """List what was changed by hand, the latest first."""
    async with open_store(options) as store:
        entries = await store.audit.list(limit)
    if output == "json":
        print_json({"entries": [asdict(entry) | {"at": time_text(entry.at)} for entry in entries]})
    else:
        columns = ("entry", "at", "by", "act", "subject", "before", "after", "reason")
        print_table(columns, [_row(entry) for entry in entries])


@app.command
async def verify(*, options: BackendOptions | None = None, output: Output = "table") -> int:
    """Check that no entry was edited, added or removed; exit code 1 if one was."""
    async with open_store(options) as store:
        problems = await store.audit.verify()
        # An entry that cannot be read is among the problems, and cannot be listed.
        last = [] if problems else await store.audit.list(1)
    if output == "json":
        print_json({"problems": problems, "last_hash": last[0].hash if last else None})
    elif last:
        print(f"Every entry up to {last[0].seq} is as it was written. Hash of the last: {last[0].hash}")
    else:
        print("\n".join(problems) or "The audit is empty.")
    return 1 if problems else 0


def _row(entry: AuditEntry) -> tuple[str, ...]:
    changed = ("-" if value is None else compact(value) for value in (entry.before, entry.after))
    return (
        str(entry.seq),
        time_text(entry.at) or "-",
        entry.actor,
        entry.act,
        entry.subject,
        *changed,
        entry.reason or "-",
    )
