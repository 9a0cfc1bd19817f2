"""Every route, called for what another tenant or another namespace has: as if it had never existed."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import httpx
import pytest

from fairlead.api.server import ROUTES
from fairlead.api.table import Route
from fairlead.model.dead_letter import DeadFilter
from fairlead.model.job import Job, NewJob
from fairlead.model.key import SCOPES
from fairlead.model.reports import Failed, Progress
from fairlead.model.task import NewTask
from fairlead.pipeline.pipelines import submit_job
from fairlead.settings import Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.requests import BODIES, NO_BLOB, NO_TASK
from tests.api.serving import Gateway
from tests.connections import patient_store

SHARED = "common"
OTHER = "other"  # a second namespace of the gateway
TENANT = "acme-tenant"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0", "FAIRLEAD_NAMESPACES__OTHER": "{}"}


@pytest.fixture
async def key_of_another_namespace(gateway: Gateway) -> AsyncIterator[str]:
    """It may do everything there."""
    async with patient_store(gateway.engine, OTHER, gateway.settings) as store:
        yield (await store.api_keys.create("stranger", SCOPES)).key_text
        assert not await examine(store.connection)


@dataclass(frozen=True)
class World:
    """What a tenant has: all words in it begin with `acme`, and these are the ids."""

    tasks: tuple[str, ...]
    jobs: tuple[str, ...]
    steps: tuple[str, ...]
    blobs: tuple[str, ...]

    def objects(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """By the names they have in paths: those that are foreign, and one that never was."""
        return {
            "task_id": (self.tasks + self.steps, NO_TASK),
            "job_id": (self.jobs, NO_TASK),
            "name": (("acme-group", SHARED), "nobodys-group"),
            "lease_id": (("acme-lease", "acme-own-lease"), "nobodys-lease"),
            "worker_id": (("acme-worker",), "nobodys-worker"),
            "blob": (self.blobs, NO_BLOB),
        }


async def make_world(store: Store, api: httpx.AsyncClient, keys: Keys) -> World:
    await store.declare("code", {"draw": TaskSettings()}, {SHARED: Slots(limit=9, shared=True)})
    await store.declare("code", {"draw": TaskSettings()}, {}, {"story": (("draw",),)})
    await store.workers.register("acme-worker", capacity=9)
    made = {name: new_task(name) for name in ("dead", "runs", "done", "waits")}
    for name in ("dead", "runs", "done"):
        await store.submit_one(made[name])
        (task,) = (await store.claim("acme-worker")).tasks
        progress = Progress(task.task_id, task.fence, 0.5, "acme-progress", ["acme-output"])
        assert await store.progress("acme-worker", progress) == [None]
        if name == "dead":
            report = Failed(task.task_id, task.fence, "acme-code", "acme-error", retriable=False)
            await store.fail("acme-worker", report)
        if name == "done":
            await store.cancel(task.task_id)
    await store.submit_one(made["waits"])
    job = NewJob(feature_name="story", input_data={"acme": 1}, tenant=TENANT, user_id="acme-ann")
    await submit_job(store.jobs, job)
    for name, lease_id in (("acme-group", "acme-own-lease"), (SHARED, "acme-lease")):
        await store.limits.acquire(
            name, tenant=TENANT, by_tenant=True, lease_id=lease_id, holder="acme-holder"
        )
    await store.audit.record("acme-admin", "set_limit", "acme-group", None, {"acme": 1})
    steps = (await store.jobs.get(job.job_id)).steps
    key = await keys.make("submit", tenant=TENANT)
    stored = await api.put("/api/v1/blobs", content=b"acme-file", headers=bearer(key))
    return World(
        tuple(task.task_id for task in made.values()),
        (job.job_id,),
        tuple(step.task_id for step in steps),
        (stored.json()["blob"],),
    )


def new_task(name: str) -> NewTask:
    return NewTask(
        task_type="draw",
        tenant=TENANT,
        by_tenant=True,
        user_id="acme-ann",
        parameters={"acme": name},
        concurrency_group="acme-group",
        concurrency_limit=9,
        limits={SHARED: 1},
        idempotency_key=f"acme-{name}",
        trace_id="acme-trace",
    )


def without_waits(job: Job) -> Job:
    """The wait of a step that waits grows."""
    return replace(job, steps=tuple(replace(step, waited_seconds=None) for step in job.steps))


async def seen_by_operator(store: Store, world: World) -> Any:
    """All that may not have changed."""
    return (
        [await store.get(task) for task in (*world.tasks, *world.steps)],
        [without_waits(await store.jobs.get(job)) for job in world.jobs],
        [await store.limits.get(name, tenant=TENANT) for name in ("acme-group", SHARED)],
        [task.task_id for task in (await store.dead_letters.page(wanted=DeadFilter(tenant=TENANT))).tasks],
        [worker for worker in (await store.stats()).workers],
    )


def foreign_paths(route: Route, world: World) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """A path about foreign things, the same about unknown ones, and the replacements that make them equal."""
    words = re.findall(r"{(\w+)}", route.path)
    known = world.objects()
    assert known.keys() >= set(words), f"{route.path}: add a foreign and an unknown value here"
    queries = ["", "?force=true"] if "force" in route.query.__struct_fields__ else [""]
    if "messages" in route.query.__struct_fields__:  # a stream that otherwise has no end
        queries = ["?messages=1"]
    for query, *foreign in product(queries, *(known[word][0] for word in words)):
        unknown = [known[word][1] for word in words]
        if foreign[:1] == [SHARED]:  # it is there for everybody: only its leases are foreign
            if route.method != "GET" and "lease_id" not in words:
                continue
            unknown[0] = SHARED
        pairs = list(zip(foreign, unknown, strict=True))
        paths = [route.path.format(**dict(zip(words, values, strict=True))) for values in (foreign, unknown)]
        yield paths[0] + query, paths[1] + query, pairs


async def test_a_thing_of_another_tenant_is_not_found_and_nothing_is_revealed_about_it(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    world = await make_world(store, api, keys)
    wrong = await differing_answers(api, store, world, bearer(await keys.make(tenant="other")))
    assert not wrong, "\n".join(wrong)


async def test_a_thing_of_another_namespace_is_not_found_and_nothing_is_revealed_about_it(
    api: httpx.AsyncClient, keys: Keys, store: Store, key_of_another_namespace: str
) -> None:
    world = await make_world(store, api, keys)
    wrong = await differing_answers(api, store, world, bearer(key_of_another_namespace), is_tenant=False)
    assert not wrong, "\n".join(wrong)


async def differing_answers(
    api: httpx.AsyncClient, store: Store, world: World, other: dict[str, str], *, is_tenant: bool = True
) -> list[str]:
    """Answers to a stranger that are not the same for what is foreign and for what never was.

    One of another namespace may give its own things the same names, and sees those.
    """
    secrets = ("acme",) if is_tenant else ("acme-ann", "acme-holder", "acme-error", "acme-trace", TENANT)
    before = await seen_by_operator(store, world)
    wrong: list[str] = []

    async def ask(route: Route, path: str) -> httpx.Response:
        body = BODIES.get(route.body.__name__, {}) if route.body else None
        return await api.request(route.method, path, json=body, headers=other)

    for route in ROUTES:
        for about_foreign, about_unknown, pairs in foreign_paths(route, world):
            foreign = await ask(route, about_foreign)
            text = foreign.text
            for theirs, nobodys in pairs:
                text = text.replace(theirs, nobodys)
            if any(one in text for one in (*secrets, *world.tasks, *world.jobs, *world.steps)):
                wrong.append(f"{route.method} {about_foreign} reveals {foreign.text}")
            if not pairs or (not is_tenant and "{name}" in route.path):
                continue
            unknown = await ask(route, about_unknown)
            is_same = (foreign.status_code, text) == (unknown.status_code, unknown.text)
            varies = route.method == "PUT" or foreign.status_code == 201  # it created something
            if foreign.status_code != unknown.status_code or not (is_same or varies):
                wrong.append(f"{route.method} {about_foreign}: {foreign.text} but of none {unknown.text}")
            if "task_id" in route.path or "job_id" in route.path:
                assert foreign.status_code == 404, (route.path, foreign.text)
            if route.for_all_tenants and is_tenant:
                assert foreign.status_code == 403, (route.path, foreign.text)
    assert await seen_by_operator(store, world) == before
    return wrong


async def test_names_of_another_tenant_mean_nothing_in_a_submit(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    world = await make_world(store, api, keys)
    other = bearer(await keys.make(tenant="other"))
    before = await seen_by_operator(store, world)

    async def post(path: str, **body: Any) -> dict[str, Any]:
        answer = await api.post(path, json=body, headers=other)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    for name, task_id in (("dead", world.tasks[0]), ("waits", world.tasks[3]), ("never", NO_TASK)):
        made = await post(
            "/api/v1/tasks",
            task_type="draw",
            task_id=task_id,
            idempotency_key=f"acme-{name}",
            concurrency_group="acme-group",
            concurrency_limit=1,
        )
        task = await store.get(made["task_id"])
        assert (task.tenant, task.parameters, task.task_id in world.tasks) == ("other", {}, False)
    job = await post("/api/v1/jobs", feature_name="story", job_id=world.jobs[0], input_data={})
    assert (await store.jobs.get(job["job_id"])).tenant == "other"
    lease = await post(f"/api/v1/limits/{SHARED}/leases", lease_seconds=30, lease_id="acme-lease")
    shared = await store.limits.get(SHARED)
    assert lease["lease_id"] == "acme-lease"
    assert sorted(slot.tenant or "" for slot in shared.slots if not slot.is_task) == [TENANT, "other"]
    await store.limits.release_known(SHARED, "acme-lease", tenant="other")
    now = await seen_by_operator(store, world)
    assert (now[:2], now[3:]) == (before[:2], before[3:])
