"""What each key sees and may do on the pages: reading, and one tenant."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Page

from tests.api.serving import Gateway
from tests.browser.hostile import TEXTS, assert_harmless
from tests.browser.person import WorkerOverHttp, expecting, run_elsewhere
from tests.browser.scene import fail_one, sent, submit
from tests.connections import patient_store

ASKS = re.compile("…")  # in the name of a button that asks before it acts
BOSS = TEXTS[1]
DETAILS = ("/limits/gpu", "/types/draw", "/jobs/{job}", "/dead-letters/{dead}", "/workers/{worker}")


@dataclass
class Keyed:
    keys: dict[str, str]
    job: str
    dead: str
    worker: str


@pytest.fixture(scope="module")
def keyed(gateway: Gateway) -> Iterator[Keyed]:
    """Work of two tenants, and a key of each kind."""

    async def make() -> dict[str, str]:
        async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
            create = store.api_keys.create
            return {
                "admin": (await create(BOSS, ["submit", "read", "cancel", "worker", "admin"])).key_text,
                "viewer": (await create("viewer", ["read"])).key_text,
                "acme": (await create("acme", ["submit", "read", "admin"], tenant="acme")).key_text,
                "other": (await create("other", ["submit", "read", "admin"], tenant="other")).key_text,
            }

    keys = run_elsewhere(make())

    def client(name: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {keys[name]}"}
        return httpx.Client(base_url=gateway.url, timeout=40, trust_env=False, headers=headers)

    with client("admin") as api, client("acme") as acme, client("other") as other:
        while acme.get("/api/v1/audit").status_code != 403:
            pass
        worker = WorkerOverHttp(api)
        sent(api, "PUT", "/api/v1/limits/gpu", {"limit": 1})
        sent(api, "PUT", "/internal/declarations", {"types": {"draw": {}}, "pipelines": {"poster": ["draw"]}})
        dead = fail_one(api, worker)
        job = sent(api, "POST", "/api/v1/jobs", {"feature_name": "poster"})["job_id"]
        for tenant, name in ((acme, "acme"), (other, "other")):
            sent(tenant, "PUT", f"/api/v1/limits/own-of-{name}", {"limit": 1})
            submit(tenant, "draw", user_id=f"user-of-{name}")
        yield Keyed(keys, job, dead, worker.id)
        worker.leave()


def log_in(page: Page, key: str) -> None:
    page.goto("/")
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Log in").click()
    expecting(page.get_by_role("navigation")).to_be_visible()


def test_a_key_for_reading_sees_everything_and_no_action(page: Page, keyed: Keyed) -> None:
    log_in(page, keyed.keys["viewer"])
    expecting(page.get_by_role("link", name="Limits")).to_be_visible()
    for hidden in ("Audit", "What if"):
        expecting(page.get_by_role("link", name=hidden, exact=True)).to_have_count(0)
    for path in DETAILS:
        page.goto(path.format(**vars(keyed)))
        detail = page.locator("section.detail")
        expecting(detail.locator("h2")).to_be_visible()
        expecting(page.locator("a.lr").first).to_be_visible()
        assert page.get_by_role("button", name=ASKS).all_inner_texts() == []
        expecting(page.get_by_role("button", name="New limit")).to_have_count(0)


def test_an_admin_acts_within_the_session(page: Page, keyed: Keyed, gateway: Gateway) -> None:
    log_in(page, keyed.keys["admin"])
    page.goto("/limits/gpu")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason, kept in the audit log").fill("from the session")
    page.get_by_role("button", name="Pause gpu").click()
    expecting(page.get_by_text("Paused: nothing more starts.")).to_be_visible()
    page.goto("/audit")
    expecting(page.get_by_role("link", name="pause limit gpu")).to_contain_text(BOSS)
    assert_harmless(page)


def test_a_tenant_sees_and_changes_what_is_its_own(page: Page, keyed: Keyed) -> None:
    log_in(page, keyed.keys["acme"])
    for hidden in ("Workers", "Crons", "Audit", "What if"):
        expecting(page.get_by_role("link", name=hidden, exact=True)).to_have_count(0)
    page.goto("/tasks")
    expecting(page.get_by_text("user-of-acme")).to_be_visible()
    expecting(page.get_by_text("user-of-other")).to_have_count(0)
    page.goto("/limits")
    expecting(page.get_by_role("link", name="own-of-acme")).to_be_visible()
    for foreign in ("own-of-other", "gpu"):
        expecting(page.get_by_role("link", name=foreign)).to_have_count(0)
    page.get_by_role("link", name="own-of-acme").click()
    page.get_by_role("button", name="Change…").click()
    page.get_by_label("Units at a time; 0 pauses").fill("4")
    page.get_by_role("button", name="Change own-of-acme").click()
    expecting(page.get_by_text("4 slots")).to_be_visible()
    page.goto(f"/jobs/{keyed.job}")
    expecting(page.get_by_role("alert")).to_be_visible()
