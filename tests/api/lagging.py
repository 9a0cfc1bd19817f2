"""A gateway that notes for how long its event loop was held: fixtures for modules that import them."""

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fairlead.store.store import Store
from tests.api import lag_probe
from tests.api.serving import Gateway, serving
from tests.servers import Server

#: Times the work that the probe knows: about 50 ms on a machine of 2026.
MOST = 7.0
TRIES = 8
numbers = itertools.count()


Act = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Lags:
    file: Path

    async def check(self, act: Act) -> None:
        """While this is done the loop is not held for long. What holds it does so every time; a busy machine,
        on which the same work takes more time, now and then."""
        worst: list[float] = []
        for _ in range(TRIES):
            self.file.write_text("")
            await act()
            worst.append(max(map(float, self.file.read_text().split()), default=0.0))
            if worst[-1] < MOST:
                return
        raise AssertionError(
            f"the loop was held for {worst} times the known work of the probe, {MOST} are allowed"
        )


@pytest.fixture(scope="module")
def lags(tmp_path_factory: pytest.TempPathFactory) -> Lags:
    return Lags(tmp_path_factory.mktemp("lags") / "lags")


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server], lags: Lags, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    engine, namespace = start_server("valkey").url, f"lag-{os.getpid()}-{next(numbers)}"
    folder, env = tmp_path_factory.mktemp("api"), {"FAIRLEAD_LAG_FILE": str(lags.file)}
    with serving(engine, namespace, folder, env=env, prepare=lag_probe.install) as gateway:
        yield gateway


@pytest.fixture
async def http(gateway: Gateway, store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """Without the check of the contract, which would read large answers for long."""
    async with httpx.AsyncClient(base_url=gateway.url, timeout=60, trust_env=False) as client:
        yield client
