"""`fairlead history`: the database of what has happened."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from cyclopts import App, Parameter

from fairlead.background import done_before, loop_factory
from fairlead.cli.export import export
from fairlead.cli.history_options import opened_history
from fairlead.cli.moments import read_duration
from fairlead.cli.options import DEFAULTS, Options, OutputOption, ServerOptions, StoreOptions
from fairlead.cli.output import print_json
from fairlead.cli.server import SERVER
from fairlead.cli.table import print_facts
from fairlead.clock import now_ms
from fairlead.errors import FairleadError
from fairlead.history.generations import generations_of
from fairlead.history.migrations import migrate as bring_up_to_date
from fairlead.history.opening import History
from fairlead.history.pruning import Keep, prune
from fairlead.log.setup import set_up_logging
from fairlead.settings import Settings
from fairlead.store.opening import connected_store
from fairlead.store.outbox import Lag
from fairlead.times import time_text
from fairlead.upkeep.recording import IDLE_SECONDS, PROMPT_SECONDS, Recording
from fairlead.worker.options import GRACE_SECONDS
from fairlead.worker.signals import StopRequest

app = App(name="history", help="Show, migrate and prune the history, or record it in a process of its own.")
app.command(export)


@app.command
async def status(*, options: Options = DEFAULTS) -> None:
    """Show which database has the history, how far it goes, and how far it is behind."""
    settings, _ = options.read_settings()
    async with opened_history(settings) as history:
        facts = await _facts(history, await _lag(settings))
    if options.output == "json":
        print_json(facts)
    else:
        print_facts({name.replace("_", " "): fact for name, fact in facts.items() if fact is not None})


@app.command
async def migrate(*, options: StoreOptions = DEFAULTS, output: OutputOption = "table") -> None:
    """Bring the schema of the database up to date; every process that uses it does so, too."""
    settings, _ = options.read_settings()
    async with opened_history(settings) as history:
        before, now = await bring_up_to_date(history.database)
    if output == "json":
        print_json({"before": before, "schema": now})
    else:
        print(f"The schema is {now}." if before == now else f"The schema is {now}; it was {before}.")


@app.command(name="prune")
async def prune_old(
    *,
    older_than: Annotated[
        str | None, Parameter(help="How long ago it ended, as in 90d; else history.keep_days.")
    ] = None,
    options: StoreOptions = DEFAULTS,
    output: OutputOption = "table",
) -> None:
    """Delete what ended too long ago, and the oldest of what takes too much room; a recorder does so, too."""
    settings, _ = options.read_settings()
    keep = _kept(settings)
    if older_than is not None:
        keep = replace(keep, days=read_duration("--older-than", older_than) / 86_400)
    deleted = 0
    async with opened_history(settings) as history:
        while batch := await prune(history, keep, now_ms()):
            deleted += batch
        await history.database.give_back()
    if output == "json":
        print_json({"deleted": deleted})
    else:
        print("1 row deleted" if deleted == 1 else f"{deleted} rows deleted")


@app.command
def record(*, options: ServerOptions = SERVER) -> None:
    """Record until SIGTERM or Ctrl-C, on a machine of its own if need be. Of all recorders one is elected."""
    settings, _ = options.read_settings()
    set_up_logging(settings.log)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_record(settings))


async def _record(settings: Settings) -> None:
    stop = StopRequest(GRACE_SECONDS).on_signals()
    pace = PROMPT_SECONDS if settings.is_ledger else IDLE_SECONDS
    async with (
        opened_history(settings, durable=settings.is_ledger) as history,
        connected_store(settings) as store,
    ):
        recording = Recording(store, history, idle_seconds=pace, keep=_kept(settings))
        await done_before(recording.run(), stop.requested.wait())


def _kept(settings: Settings) -> Keep:
    return Keep(settings.history.keep_days, settings.history.max_bytes)


async def _lag(settings: Settings) -> Lag | None:
    """None: the store does not answer, or nothing was ever recorded."""
    try:
        async with connected_store(settings) as store:
            return await store.outbox.lag()
    except FairleadError:
        return None


async def _facts(history: History, lag: Lag | None) -> dict[str, Any]:
    await history.number()
    generations = await generations_of(history)
    latest = generations[0] if generations else None
    return {
        "database": history.database.name,
        "namespace": history.namespace,
        "bytes": await history.database.size(),
        "since": time_text(generations[-1].begun_at) if latest else None,
        "recorded_events": latest.position if latest else 0,
        "unrecorded_events": lag.events if lag else None,
        "lag_seconds": lag.seconds if lag else None,
        "lost_events": sum(one.lost for one in generations),
        "missing_records": sum(one.missing for one in generations),
    }
