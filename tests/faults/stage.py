"""Where faults happen: a store, worker processes on it, the log. The doctor comes at the end."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.settings import Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, Fleet
from tests.faults.history import History
from tests.faults.sink import Sink


@dataclass(frozen=True)
class Stage:
    url: str
    store: Store
    fleet: Fleet
    history: History
    sink: Sink


@contextlib.asynccontextmanager
async def stage(url: str, more_settings: str = "", settings: Settings = HASTE) -> AsyncIterator[Stage]:
    """On its own server. `more_settings`: TOML for the workers."""
    with tempfile.TemporaryDirectory(prefix="fl-stage-") as folder, Sink(url) as sink:
        async with (
            Store.connect(url, settings=settings) as store,
            Fleet(("--engine", url), Path(folder), more_settings, settings) as fleet,
            History(store).following() as history,
        ):
            yield Stage(url, store, fleet, history, sink)
            breaches = await examine(store.connection)
            assert not breaches, breaches
