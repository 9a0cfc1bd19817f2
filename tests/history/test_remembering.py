"""A process that starts learns from the history which data to expect: no memory of its own is needed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.history.remembering import recall_from_history
from fairlead.settings import HistorySettings, Settings
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import record_all
from tests.store.namespace import new, raw, wipe


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # with an address of the engine the history is the one that is named
    url = f"sqlite:///{tmp_path / 'history.sqlite3'}"
    return Settings(history=HistorySettings(url=url))


async def recorded(store: Store) -> None:
    assert store.settings.history.url
    history = History(open_database(store.settings.history.url), store.connection.keys.namespace)
    await record_all(Recorder(store, history))
    await history.close()


def stranger(store: Store, open_store: Callable[..., Store], settings: Settings) -> Store:
    """A process that knows nothing, with the settings of the namespace."""
    namespace = store.connection.keys.namespace
    return open_store(namespace=namespace, clock=store.clock, settings=settings.of_namespace(namespace))


async def test_a_loss_is_noticed_by_a_process_that_knows_nothing(
    store: Store, clock: Clock, open_store: Callable[..., Store], settings: Settings
) -> None:
    await store.submit_one(new())
    await recorded(store)
    await wipe(store)
    other = stranger(store, open_store, settings)
    await recall_from_history(other)
    with pytest.raises(errors.StoreLost, match="fairlead restore"):
        await other.open()
    await other.epochs.seal()
    third = stranger(store, open_store, settings)
    with pytest.raises(errors.StoreLost):
        await third.open()
    await other.epochs.accept("new", 0)
    await store.open()
    await other.close()
    await third.close()


async def test_an_older_state_is_noticed(
    store: Store, open_store: Callable[..., Store], settings: Settings
) -> None:
    await store.submit_one(new())
    await recorded(store)
    await raw(store).hincrby(store.connection.keys.meta, "beat", -50)
    other = stranger(store, open_store, settings)
    await recall_from_history(other)
    with pytest.raises(errors.StoreLost, match="older state"):
        await other.open()
    await raw(store).hincrby(store.connection.keys.meta, "beat", 50)
    await other.open()
    await other.close()


async def test_a_namespace_that_is_newer_than_the_history_is_opened(
    store: Store, open_store: Callable[..., Store], settings: Settings
) -> None:
    """An operator has accepted a loss, and nothing was recorded since."""
    await store.submit_one(new())
    await recorded(store)
    await wipe(store)
    await store.epochs.seal()
    await store.epochs.accept("new", 0)
    await store.open()
    other = stranger(store, open_store, settings)
    await recall_from_history(other)
    await other.open()
    await other.close()
