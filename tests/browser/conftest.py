"""A real gateway and one Chromium for each module; every test gets a fresh context.

These tests are not asynchronous: Playwright's blocking interface reads like what a person does.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from fairlead.store.doctor.doctor import examine
from tests.api.serving import Gateway, serving
from tests.browser.person import PATIENT, WorkerOverHttp, expecting, run_elsewhere
from tests.connections import patient_store
from tests.programs import need_browser
from tests.servers import Server

REBOUND = "rebound.example"  # a name that somebody else has pointed to this machine
numbers = itertools.count()
#: What the console says of a violation; that no other site may frame a page is tried on purpose.
POLICY = re.compile(
    "^(?!.*frame-ancestors).*(content security policy|trusted ?(html|script))", re.IGNORECASE | re.DOTALL
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer than a module: while Playwright runs, no other event loop can in this thread."""
    path = need_browser()
    expecting.set_options(timeout=PATIENT)
    with sync_playwright() as playwright:
        names = f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"
        chromium = playwright.chromium.launch(executable_path=path, args=[names])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    """Modules that need other settings override this; estimates are off, because they are a process."""
    return {}


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server],
    server_env: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gateway]:
    """Shared by the tests of a module, which leave a store that the doctor finds well."""
    engine, namespace = start_server("valkey").url, f"browser-{os.getpid()}-{next(numbers)}"
    with serving(engine, namespace, tmp_path_factory.mktemp("browser"), env=server_env) as gateway:
        yield gateway
        assert not run_elsewhere(breaches(gateway))


async def breaches(gateway: Gateway) -> object:
    async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
        return await examine(store.connection)


@pytest.fixture
def api(gateway: Gateway) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.url, timeout=40, trust_env=False) as client:
        yield client


@pytest.fixture
def worker(api: httpx.Client) -> Iterator[WorkerOverHttp]:
    """A worker whose every step the test decides."""
    made = WorkerOverHttp(api)
    yield made
    made.leave()


@pytest.fixture
def context(browser: Browser, gateway: Gateway) -> Iterator[BrowserContext]:
    """In which no script fails, neither ours nor one that is in a text, and nothing breaks the policy."""
    problems: list[str] = []
    made = browser.new_context(base_url=gateway.url, viewport={"width": 1440, "height": 900})
    made.set_default_timeout(PATIENT)
    made.on("weberror", lambda error: problems.append(str(error.error)))
    made.on("dialog", lambda dialog: problems.append(f"a dialog says {dialog.message}"))
    made.on("console", lambda said: problems.append(said.text) if POLICY.search(said.text) else None)
    yield made
    made.close()
    assert problems == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: the folder that CI publishes, or a temporary one."""
    folder = Path(os.environ.get("FAIRLEAD_SHOTS") or tmp_path_factory.getbasetemp() / "shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
