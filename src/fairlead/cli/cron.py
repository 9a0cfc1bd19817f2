"""`fairlead cron`: which periodic tasks there are, and when each ticks."""

from cyclopts import App

from fairlead.cli.listing import LIST, ListOptions, View, show
from fairlead.cli.options import open_backend
from fairlead.cli.table import Columns, table_of
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
    async with open_backend(options) as backend:

        async def read() -> View:
            crons = [CronAnswer.from_value(cron) for cron in await backend.crons.all()]
            return View({"crons": crons}, [table_of(crons, COLUMNS, LEAST_USED)])

        await show(options, read)
