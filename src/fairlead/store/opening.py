"""A store for these settings: on the given server, or on the embedded one of the data folder."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fairlead.errors import EngineFailed, InvalidSettings, NamespaceNotOpen, StoreLost, StoreUnavailable
from fairlead.settings import Settings
from fairlead.settings.folders import data_folder
from fairlead.settings.sources import Sources
from fairlead.store.engine.engine import Engine, open_engine
from fairlead.store.engine.folder import EngineFolder
from fairlead.store.engine.state import EngineHealth
from fairlead.store.remembered import Remembered
from fairlead.store.route import route_to
from fairlead.store.store import Store

T = TypeVar("T")
Recall = Callable[[Store], Awaitable[None]]


@asynccontextmanager
async def connected_store(settings: Settings) -> AsyncIterator[Store]:
    """Connected, but not opened: nothing is written. An embedded server ends with its starter."""
    if settings.engine.is_gateway:
        raise InvalidSettings(
            f"this works on the engine itself, not through a gateway ({settings.engine.url}): run it where "
            "the engine is, and say --engine URL or --data FOLDER"
        )
    if settings.engine.url:
        store = Store.connect(settings.engine.url, settings.engine.namespace, settings)
        _recall(store, Remembered.of_server(settings.engine, store.connection.membership))
        try:
            yield store
        finally:
            await store.close()
        return
    embedded = _Embedded(settings)
    await embedded.open()
    try:
        yield embedded.store
    finally:
        await embedded.close()


@asynccontextmanager
async def gateway_store(
    settings: Settings,
    sources: Sources | None = None,
    *,
    govern: bool = False,
    declared: bool = False,
    recall: Recall | None = None,
) -> AsyncIterator[Store]:
    """For a gateway. It stays closed if data was lost: the gateway serves all the same, and reports it.

    `govern`: the settings become the policy of the namespace; otherwise an existing one is kept. `declared`:
    the process that started this one has opened the namespace with the same settings. `recall`: learns what
    others know of the namespace, before it is opened.
    """
    async with connected_store(settings) as store:
        await _prepare(store, sources, govern, recall)
        with contextlib.suppress(StoreLost):
            await first_act(store, partial(store.open, govern=False) if declared else store.rejoin)
        yield store


async def _prepare(store: Store, sources: Sources | None, govern: bool, recall: Recall | None) -> None:
    if recall:
        await recall(store)
    _ = store.blobs.shelf  # raises what is wrong with its settings
    store.policy.sources = (sources or Sources()).of_namespace(store.settings.engine.namespace)
    store.rejoin = partial(store.open, govern=govern, declare=True)


@asynccontextmanager
async def gateway_stores(
    settings: Settings, sources: Sources | None = None, **options: Any
) -> AsyncIterator[list[Store]]:
    """As `gateway_store`, for each namespace that the settings name, the gateway's own first.

    Those that cannot be reached are joined later, unless none can.
    """
    stores, problems = list[Store](), list[StoreUnavailable]()
    async with contextlib.AsyncExitStack() as stack:
        for own in map(settings.of_namespace, settings.served):
            try:
                stores.append(await stack.enter_async_context(gateway_store(own, sources, **options)))
            except StoreUnavailable as problem:
                if not own.engine.url:  # the embedded server of all
                    raise
                problems.append(problem)
                store = await stack.enter_async_context(connected_store(own))
                await _prepare(store, sources, options.get("govern", False), options.get("recall"))
                store.is_joined = False
                stores.append(store)
        if len(problems) == len(stores):
            raise problems[0]
        yield stores


def _recall(store: Store, remembered: Remembered) -> None:
    remembered.recall()
    store.remember = remembered.keep


async def first_act(store: Store, act: Callable[[], Awaitable[T]]) -> T:
    """Runs `act`, twice if needed: the owner of an embedded server may end just after we adopted it."""
    try:
        return await act()
    except StoreUnavailable as away:
        if store.settings.engine.url or isinstance(away, StoreLost):
            raise
        await store.reopen()
        try:
            return await act()
        except StoreUnavailable:
            for problem in store.engine_problems().values():
                raise EngineFailed(problem) from None
            raise


async def visit(store: Store) -> None:
    """As `check_open`, and joins what was accepted since: for a command, which has declared nothing."""
    if not (await store.epochs.join()).is_open:
        raise NamespaceNotOpen()


def engine_folder(settings: Settings) -> EngineFolder:
    """Of the embedded server."""
    return EngineFolder(data_folder(settings.engine))


class _Embedded:
    """A store on the embedded server. When the process that owned the server has gone, ours takes over."""

    store: Store

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._health = EngineHealth(engine_folder(settings))
        self._engines: list[Engine] = []
        self._reopening = asyncio.Lock()

    async def open(self) -> None:
        engine = await self._engine()
        self._url = engine.url
        self.store = Store.connect(engine.url, self._settings.engine.namespace, self._settings)
        self.store.reopen = self._reopen
        self.store.engine_problems = self._health.problems
        folder = self._health.folder.path.parent
        _recall(self.store, Remembered.of_data(folder, self.store.connection.membership))

    async def close(self) -> None:
        await self.store.close()
        for engine in self._engines:
            await engine.close()

    async def _engine(self) -> Engine:
        engine = await open_engine(
            self._health.folder.path.parent, durability=self._settings.engine.durability
        )
        if engine.owned:
            self._engines.append(engine)
        return engine

    async def _reopen(self) -> None:
        connection = self.store.connection
        async with self._reopening:
            self._health.look()
            # Also when somebody else here has done it already. A connection we have says nothing: a server
            # that is about to end answers on it, but accepts no new connection.
            try:
                engine = await self._engine()
            except EngineFailed as problem:
                self._health.does_not_start(problem)
                raise
            # Else the connection finds the new server by itself, and has calls under way.
            if engine.url != self._url:
                self._url = self.store.url = engine.url
                await connection.move(route_to(engine.url, connection.keys.meta))
