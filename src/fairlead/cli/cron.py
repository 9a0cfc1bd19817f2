"""`fairlead cron`: which periodic tasks there are, and when each ticks."""

from cyclopts import App

from fairlead.cli.listing import LIST, ListOptions, show_all
from fairlead.cli.table import Columns
from fairlead.shapes.cron import CronAnswer

app = App(name="cron", help="List periodic tasks.")

COLUMNS: Columns = {
    "cron": "name",
    "schedule": "schedule",
    "time zone": "timezone",
    "last tick": "last_tick",
    "next tick": "next_tick",
}
LEAST_USED = ("time zone", "last tick")


@app.command(name="list")
async def list_crons(*, options: ListOptions = LIST) -> None:
    """List the crons that workers have declared, with their schedules, last and next ticks."""
    shape = CronAnswer.from_value
    await show_all(options, "crons", lambda backend: backend.crons.all(), shape, COLUMNS, LEAST_USED)
