"""`fairlead doctor`: is everything in the store as it must be? Read-only, also on a live system."""

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options import DEFAULTS, Options
from fairlead.cli.output import print_json
from fairlead.cli.table import print_table
from fairlead.errors import InvalidInput, InvalidSettings, NamespaceNotOpen, StoreFault, StoreLost
from fairlead.store.doctor.doctor import examine
from fairlead.store.doctor.snapshot import Breach
from fairlead.store.opening import connected_store, engine_folder, first_act, visit
from fairlead.store.store import Store


async def doctor(
    *,
    options: Options = DEFAULTS,
    acknowledge: Annotated[
        bool,
        Parameter(help="Accept that the embedded server cut off the end of its data file.", negative=()),
    ] = False,
) -> int:
    """Check every invariant of the namespace. Read-only, also on a live system.

    Exit code 1 and a sentence for each breach; 2 if there is no such namespace, or if it has lost data.
    """
    settings = options.client_settings()
    if acknowledge and settings.engine.url:
        raise InvalidInput("--acknowledge", "is for the embedded server: leave out --engine, and give --data")
    async with connected_store(settings) as store:
        breaches = await first_act(store, lambda: _breaches(store))
        notices = list(store.engine_problems().values())
    if acknowledge and not breaches and engine_folder(settings).acknowledge_truncation():
        notices = ["Acknowledged: the data is used as it is."]
    if options.output == "json":
        found = [{"invariant": b.invariant, "sentence": b.sentence} for b in breaches]
        print_json({"breaches": found, "notices": notices})
        return 1 if breaches else 0
    if breaches:
        rows = [(breach.invariant, breach.sentence) for breach in breaches]
        print_table(("invariant", "breach"), rows)
    else:
        print(f"Namespace {settings.engine.namespace!r}: every invariant holds.")
    for notice in notices:
        print(notice)
    return 1 if breaches else 0


async def _breaches(store: Store) -> list[Breach]:
    """Raises InvalidSettings when there is nothing to examine, or what is left after a loss."""
    problem: StoreFault | None = None
    try:
        await visit(store)
    except StoreLost as lost:
        raise InvalidSettings(f"Nothing was checked. {lost}") from None
    except StoreFault as fault:  # also where nobody ever opened it: there may be keys all the same
        problem = fault
    breaches = await examine(store.connection)
    if breaches or not problem:
        return breaches
    if not isinstance(problem, NamespaceNotOpen):
        raise problem
    raise InvalidSettings(
        f"Namespace {store.connection.keys.namespace!r} at {store.connection.address} does not exist, "
        "so there is nothing to check: see --namespace, --engine and --data."
    )
