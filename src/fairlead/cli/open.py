"""`fairlead open`: an operator accepts what a loss of data has left in the store."""

import asyncio
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli.audit import note
from fairlead.cli.options import DEFAULTS, StoreOptions
from fairlead.cli.output import say
from fairlead.errors import HistoryUnavailable, InvalidInput, StoreLost
from fairlead.history.opening import open_history
from fairlead.history.restoring import greatest_number
from fairlead.settings import Settings
from fairlead.store.opening import connected_store
from fairlead.store.store import Store

MOST_WAIT = 0.5  # seconds between two looks


async def open_again(
    *,
    new: Annotated[
        bool, Parameter(help="The data is lost: begin with an empty namespace.", negative=())
    ] = False,
    restored: Annotated[
        bool, Parameter(help="Accept the data that is there, older or other than before.", negative=())
    ] = False,
    options: StoreOptions = DEFAULTS,
) -> None:
    """Accept what the store holds after a loss of data; servers and workers then continue by themselves."""
    if new == restored:
        raise InvalidInput("open", "say --new (the data is lost) or --restored (accept what is there)")
    how: Literal["new", "restored"] = "new" if new else "restored"
    settings, _ = options.read_settings()
    namespace = settings.engine.namespace
    async with connected_store(settings) as store:
        seconds = await store.epochs.accept(how, settings.hold_ms, await _greatest_number(settings))
        if seconds > 0:
            print(
                f"Namespace {namespace!r} opens in {seconds:.0f} s, when all leases from before have ended."
            )
        await until_open(store)
        store.remember()
        await note(store, "open", namespace, None, {"accepted": how})
        print(f"Namespace {namespace!r} is open.")


async def _greatest_number(settings: Settings) -> int:
    """Of the tasks and jobs in the history: later ones are listed after them."""
    if not (history := open_history(settings)):
        return 0
    try:
        return await greatest_number(history)
    except HistoryUnavailable as problem:
        say(f"fairlead: warning: the history was not asked for its numbers: {problem}")
        return 0
    finally:
        await history.close()


async def until_open(store: Store) -> None:
    """Until the leases from before the loss have ended."""
    while True:
        try:
            return await store.open(govern=False)
        except StoreLost as problem:
            if problem.standing != "opening":
                raise
        await asyncio.sleep(MOST_WAIT)
