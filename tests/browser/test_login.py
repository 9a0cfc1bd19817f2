"""Keys in a browser: the login, what each key shows, and that no other site can use the session."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page

from tests.api.serving import Gateway
from tests.browser.conftest import REBOUND
from tests.browser.person import accessibility_problems, expecting, run_elsewhere, sideways_scroll
from tests.connections import patient_store

TASKS = "/api/v1/tasks"


@pytest.fixture(scope="module")
def keys(gateway: Gateway) -> dict[str, str]:
    """By name; from the first one on the gateway requires one."""

    async def make() -> dict[str, str]:
        async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
            create = store.api_keys.create
            return {
                "admin": (await create("admin", ["submit", "read", "cancel", "worker", "admin"])).key_text,
                "viewer": (await create("viewer", ["read"])).key_text,
                "submitter": (await create("submitter", ["submit"])).key_text,
                "leaving": (await create("leaving", ["read"])).key_text,
                "acme": (await create("acme", ["read", "submit"], tenant="acme")).key_text,
            }

    made = run_elsewhere(make())
    with httpx.Client(base_url=gateway.url, timeout=40, trust_env=False) as client:
        while client.get(TASKS).status_code != 401:
            pass
    return made


def log_in(page: Page, key: str) -> None:
    page.goto("/")
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_a_key_opens_it_and_logging_out_closes_it(page: Page, keys: dict[str, str]) -> None:
    page.goto("/")
    expecting(page.get_by_role("heading", name="Log in to Fairlead")).to_be_visible()
    assert accessibility_problems(page) == []
    assert sideways_scroll(page) == {}
    log_in(page, "flk_nonsense")
    expecting(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
    log_in(page, keys["viewer"])
    expecting(page.get_by_text("viewer, read only")).to_be_visible()
    assert keys["viewer"] not in page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, document.cookie])"
    )
    page.reload()
    expecting(page.get_by_text("viewer, read only")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expecting(page.get_by_role("heading", name="Log in to Fairlead")).to_be_visible()


def test_a_key_that_may_not_read_is_said_to(page: Page, keys: dict[str, str]) -> None:
    log_in(page, keys["submitter"])
    expecting(page.get_by_role("heading", name="This key may not read")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expecting(page.get_by_role("heading", name="Log in to Fairlead")).to_be_visible()


def test_the_end_of_a_session_ends_every_window(
    context: BrowserContext, page: Page, keys: dict[str, str], gateway: Gateway
) -> None:
    """By a logout in one of them, and when the key is revoked; nothing of it is left for the next session."""
    other = context.new_page()
    log_in(page, keys["admin"])
    other.goto("/tasks")
    expecting(other.get_by_text("admin, admin")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expecting(other.get_by_role("heading", name="Log in to Fairlead")).to_be_visible()
    log_in(page, keys["leaving"])
    expecting(page.get_by_text("leaving, read only")).to_be_visible()
    expecting(page.get_by_role("link", name="Audit")).to_have_count(0)

    async def revoke() -> None:
        async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
            await store.api_keys.revoke(keys["leaving"].split("_")[1])

    run_elsewhere(revoke())
    expecting(page.get_by_role("heading", name="Log in to Fairlead")).to_be_visible()


def test_a_tenant_sees_itself(page: Page, keys: dict[str, str]) -> None:
    log_in(page, keys["acme"])
    expecting(page.get_by_text("tenant acme")).to_be_visible()


@pytest.fixture
def other_site() -> Iterator[str]:
    """A page of somebody else, on another name of this machine."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>another site</title>")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


FETCH = """async ([url, method]) => {
    const options = {method, credentials: "include", mode: "no-cors"};
    if (method === "POST") options.body = '{"task_type": "draw"}';
    try { await fetch(url, options) } catch {}
}"""
LISTEN = """url => new Promise((done) => {
    const socket = new WebSocket(url.replace("http", "ws") + "/ws/tasks");
    const stream = new EventSource(url + "/api/v1/overview/events", { withCredentials: true });
    for (const one of [socket, stream]) one.onopen = one.onmessage = () => done("open");
    let errors = 0;
    socket.onerror = stream.onerror = () => { errors += 1; if (errors === 2) done("refused"); };
})"""
FORM = """url => {
    const form = document.createElement("form");
    form.method = "post";
    form.enctype = "text/plain";
    form.action = url;
    document.body.append(form);
    form.submit();
}"""


def test_no_other_site_can_use_the_session(
    context: BrowserContext, page: Page, gateway: Gateway, keys: dict[str, str], other_site: str
) -> None:
    log_in(page, keys["admin"])
    expecting(page.get_by_text("admin, admin")).to_be_visible()
    foreign = context.new_page()
    foreign.goto(other_site)
    answers: list[int] = []
    context.on("response", lambda answer: answers.append(answer.status) if TASKS in answer.url else None)
    for method in ("GET", "POST"):
        foreign.evaluate(FETCH, [gateway.url + TASKS, method])
    foreign.evaluate(FETCH, [gateway.url + "/task", "GET"])
    assert foreign.evaluate(LISTEN, gateway.url) == "refused"
    foreign.evaluate(FORM, gateway.url + TASKS)
    foreign.wait_for_load_state()
    with httpx.Client(base_url=gateway.url, trust_env=False) as client:
        listed = client.get(TASKS, headers={"authorization": f"Bearer {keys['admin']}"})
    assert listed.json()["tasks"] == []
    assert answers and set(answers) <= {401, 403}


def test_another_name_of_this_machine_shows_nothing(
    page: Page, gateway: Gateway, keys: dict[str, str]
) -> None:
    """As after DNS rebinding: a page of that name would be of the same origin as the answers."""
    log_in(page, keys["admin"])
    expecting(page.get_by_text("admin, admin")).to_be_visible()
    refused: set[int] = set()
    page.on(
        "response",
        lambda answer: refused.add(answer.status) if f"{REBOUND}:{gateway.port}/api/" in answer.url else None,
    )
    page.goto(f"http://{REBOUND}:{gateway.port}/")
    expecting(page.get_by_role("alert")).to_contain_text("server.hosts")
    assert refused == {421}


def test_no_other_site_can_frame_it(page: Page, gateway: Gateway, other_site: str) -> None:
    page.goto(other_site)
    page.evaluate(
        "url => { const f = document.createElement('iframe'); f.src = url; document.body.append(f) }",
        gateway.url,
    )
    expecting(page.frame_locator("iframe").locator("#app")).to_have_count(0)
