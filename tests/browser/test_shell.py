"""What surrounds every page: files and their headers, login, live updates, keys, themes."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Request, Route

from tests.api.requests import ENDLESS as STREAM
from tests.api.requests import TASKS
from tests.api.serving import Gateway, serving
from tests.browser.person import accessibility_problems, expecting, run_elsewhere, sideways_scroll
from tests.connections import patient_store
from tests.servers import Server, free_port
from tests.store.namespace import raw


def submit(api: httpx.Client, task_type: str = "draw", **options: object) -> str:
    answer = api.post(TASKS, json={"task_type": task_type, **options})
    assert answer.status_code == 201, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


#: What each page says in a new namespace; Now is the last.
EMPTY = {
    "/tasks": "No task yet. Submit a first one:",
    "/jobs": "No job yet. A pipeline is a list of tasks:",
    "/limits": "No limits yet: everything may run at once.",
    "/workers": "No worker is alive, so nothing can start:",
    "/types": "A type appears when code declares it",
    "/dead-letters": "Nothing failed for good.",
    "/crons": "No periodic task yet. One is a task with a schedule:",
    "/audit": "Pauses, changed limits, replays and keys appear here",
    "/what-if": "There is no work to try it on.",
    "/": "Nothing waits and nothing runs. Submit a first task:",
}


def test_files_are_served_with_strict_headers(api: httpx.Client) -> None:
    for path in ("/", "/dashboard/main.js", "/tasks/some-id"):
        answer = api.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = api.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        *("/dashboard/../settings/sample.toml", "/dashboard/%2e%2e/__init__.py"),
        *("/dashboard/", "/dashboard", "/dashboard/vendor", "/dashboard//main.js", "/dashboard/main.js/"),
        *("/dashboard/%00", "/dashboard/main.js%00.css", "/dashboard\\main.js", "/nothing"),
    ],
)
def test_nothing_else_is_served(api: httpx.Client, path: str) -> None:
    answer = api.send(httpx.Request("GET", str(api.base_url).rstrip("/") + path))
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_it_is_live_without_a_reload(page: Page, api: httpx.Client) -> None:
    page.goto("/")
    expecting(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    submit(api)
    expecting(page.get_by_role("heading", level=1)).to_contain_text("1")


def test_it_says_when_it_is_not_live_and_recovers_after_a_restart(
    page: Page, start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    engine, namespace, port = start_server("valkey").url, f"restart-{os.getpid()}", free_port()
    with serving(engine, namespace, tmp_path, port=port) as first:
        page.goto(first.url)
        for path, words in EMPTY.items():
            page.goto(first.url + path)
            expecting(page.get_by_text(words).first).to_be_visible()
    expecting(page.get_by_text(re.compile("Not live since .*, trying again"))).to_be_visible()
    with serving(engine, namespace, tmp_path, port=port) as second:
        expecting(page.get_by_text("Not live since")).to_have_count(0)
        with httpx.Client(base_url=second.url, timeout=40, trust_env=False) as client:
            submit(client)
        expecting(page.get_by_role("heading", level=1)).to_contain_text("1")
        page.goto("about:blank")  # so that the gateway need not wait for its stream


def test_many_windows_are_live_by_one_stream(context: BrowserContext, api: httpx.Client) -> None:
    """A browser has six connections to a host: with a stream for each window none would be left."""
    streams: set[Request] = set()
    context.on("request", lambda asked: streams.add(asked) if STREAM in asked.url else None)
    for over in ("requestfinished", "requestfailed"):
        context.on(over, lambda asked: streams.discard(asked))  # Playwright marks what it is given
    windows = [context.new_page() for _ in range(8)]
    for window in windows:
        window.goto("/tasks")
    for window in windows:
        expecting(window.get_by_role("status").filter(has_text="Live")).to_be_visible()
    while len(streams) != 1:
        windows[0].wait_for_timeout(50)
    windows.pop(0).close()  # the oldest is the one that reads
    submit(api, "seen-by-all")
    for window in windows:
        expecting(window.get_by_role("link", name="seen-by-all").first).to_be_visible()
    assert len(streams) <= 2, "the closed window may not have been reported yet"


def test_a_gateway_that_is_slow_to_answer_is_waited_for(page: Page) -> None:
    asked: list[Route] = []
    page.route("**/api/v1/session", lambda one: asked.append(one))
    page.goto("/")
    expecting(page.locator(".waiting .sub")).to_have_text("Still asking the gateway.")
    assert asked
    page.unroute("**/api/v1/session")  # the gateway gets what was held back
    expecting(page.get_by_role("navigation")).to_be_visible()


def test_an_error_has_the_sentence_of_the_api_and_the_id_of_the_request(
    page: Page, start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    async def spoil(gateway: Gateway, value: str) -> None:
        async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
            await raw(store).set(store.connection.keys.key("audit"), value)

    engine, namespace = start_server("valkey").url, f"spoilt-{os.getpid()}"
    with serving(engine, namespace, tmp_path, failing=("request_failed",)) as gateway:
        run_elsewhere(spoil(gateway, "no stream"))
        page.goto(f"{gateway.url}/audit")
        words, _, request_id = page.get_by_role("alert").inner_text().rpartition(" ")
        assert "Run `fairlead doctor`" in words and request_id in gateway.log_text()
        page.goto("about:blank")


def test_without_keys_a_window_shows_the_namespace_that_was_chosen(
    page: Page, start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    (tmp_path / "fairlead.toml").write_text("[namespaces.blue]\n")
    with serving(start_server("valkey").url, f"home-{os.getpid()}", tmp_path) as served:
        with httpx.Client(base_url=served.url, timeout=40, trust_env=False) as client:
            submit(client, "at-home")
            client.headers["fairlead-namespace"] = "blue"
            submit(client, "in-blue")
        page.goto(f"{served.url}/tasks")
        expecting(page.get_by_role("link", name="at-home")).to_be_visible()
        page.get_by_label("Namespace").select_option("blue")
        expecting(page.get_by_role("heading", level=1)).to_contain_text("1 task")
        page.goto(f"{served.url}/tasks")
        expecting(page.get_by_role("link", name="in-blue")).to_be_visible()
        expecting(page.get_by_role("link", name="at-home")).to_have_count(0)
        page.goto(f"{served.url}/tasks?namespace=home-{os.getpid()}")
        expecting(page.get_by_role("link", name="at-home")).to_be_visible()
        page.goto("about:blank")


def test_keys_open_help_and_switch_the_theme(page: Page) -> None:
    page.goto("/")
    expecting(page.get_by_role("navigation")).to_be_visible()
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") != theme
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") != theme, "it is remembered"
    expecting(page.get_by_role("navigation")).to_be_visible()
    page.keyboard.press("?")
    expecting(page.get_by_role("dialog")).to_contain_text("switch between light and dark")
    page.keyboard.press("Escape")
    expecting(page.get_by_role("dialog")).to_have_count(0)


def test_an_unknown_page_says_so(page: Page) -> None:
    page.goto("/tasks/a/b/c")
    expecting(page.get_by_text("There is no page at this address.")).to_be_visible()


def test_a_phone_and_a_wall_show_the_shell(page: Page) -> None:
    page.goto("/")
    expecting(
        page.get_by_role("heading", level=1).or_(page.get_by_text("Nothing waits")).first
    ).to_be_visible()
    assert sideways_scroll(page) == {}
    assert accessibility_problems(page) == []
