"""Every act of the store, each on a busy namespace."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead import errors
from fairlead.model.job import JobStatus, NewJob, NewStep
from fairlead.model.key import Identity
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Rate, Slots, TaskSettings
from fairlead.settings.tiers import Tier
from fairlead.store.connection import pack
from fairlead.store.policy import stored_policy
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.api_keys import usable_key
from tests.conftest import Clock

BEGAN = Clock().now
ANN = Identity(None, "ann", ("read",))


@dataclass
class Scene:
    """A busy namespace: every kind of thing that an act may have to touch is there."""

    store: Store
    clock: Clock
    running: list[Task]
    queued: str
    dead: str
    new: list[NewTask]
    key: str
    ticket: str
    job: tuple[str, list[Task]] | None = None


async def busy(store: Store, clock: Clock) -> Scene:
    await store.limits.set("gpu", Slots(limit=2))
    await store.limits.set("disk", Slots(limit=1))
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2))
    await store.workers.register("w", capacity=4, capabilities=["gpu"])
    await store.workers.register("idle", capacity=2)
    assert await store.crons.last("cron") == (BEGAN, BEGAN)
    dead = NewTask(task_type="dead", max_retries=0)
    await store.submit(dead)
    (task,) = (await store.claim("w")).tasks
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.submit(
        NewTask(
            task_type="draw", limits={"gpu": 1, "disk": 1}, user_id="ann", required_capabilities=("gpu",)
        ),
        NewTask(task_type="call", limits={"api": 1}),
        NewTask(task_type="echo", priority="high"),
    )
    running = (await store.claim("w", 3)).tasks
    assert len(running) == 3
    waiting = NewTask(
        task_type="draw", limits={"gpu": 1, "disk": 1}, user_id="bob", required_capabilities=("gpu",)
    )
    await store.submit(
        waiting,
        NewTask(task_type="draw", limits={"gpu": 2}, priority="low"),
        NewTask(task_type="later", delay_seconds=5, user_id="ann"),
        NewTask(task_type="soon", max_wait_seconds=1000, required_capabilities=("gpu",)),
    )
    assert (await store.claim("idle", idle=True)).tasks == []
    await store.api_keys.create("old", ["read"], expires_seconds=1)
    key = (await store.api_keys.create("web", ["read"], expires_seconds=10**8)).api_key.id
    new = [
        NewTask(task_type="draw", limits={"gpu": 1}, idempotency_key="k", user_id="ann", tenant="acme"),
        NewTask(task_type="new", concurrency_group="fresh", concurrency_limit=2),
        NewTask(task_type="later", delay_seconds=9, max_wait_seconds=100, user_id="bob"),
    ]
    ticket = await store.tickets.make(ANN)
    return Scene(store, clock, running, waiting.task_id, dead.task_id, new, key, ticket)


def by_type(scene: Scene, kind: str) -> Task:
    return next(task for task in scene.running if task.task_type == kind)


async def submit(scene: Scene) -> object:
    return [
        str(answer)
        for answer in await scene.store.submit(*scene.new)
        if isinstance(answer, errors.FairleadError)
    ]


async def complete(scene: Scene) -> object:
    task = by_type(scene, "draw")
    return await scene.store.complete("w", Completed(task.task_id, task.fence, 1))


async def complete_and_drop(scene: Scene) -> object:
    """Of what has ended the oldest goes, which may be what ends in this very act."""
    store = scene.store
    retention = msgspec.structs.replace(store.settings.retention, max_finished=1, max_dead=1)
    policy = stored_policy(msgspec.structs.replace(store.settings, retention=retention))
    await store.connection.run("configure", SCHEMA, pack(policy), 1, "token")
    done, failed = by_type(scene, "draw"), by_type(scene, "echo")
    await store.complete(
        "w", Completed(done.task_id, done.fence, 1), Completed(by_type(scene, "call").task_id)
    )
    return await store.fail("w", Failed(failed.task_id, failed.fence, retriable=False))


async def fail(scene: Scene) -> object:
    task = by_type(scene, "draw")
    return await scene.store.fail("w", Failed(task.task_id, task.fence, code="timeout", jitter=0))


async def crash(scene: Scene) -> object:
    task = by_type(scene, "draw")
    return await scene.store.fail("w", Failed(task.task_id, task.fence, crashed=True, jitter=0))


async def progress(scene: Scene) -> object:
    tasks = scene.running[:2]
    reports = [Progress(task.task_id, task.fence, 0.5, "on", ["a", "b"], first=1) for task in tasks]
    return await scene.store.progress("w", *reports)


ELASTIC, SESSION, SLOW = (f"00000000-0000-7000-8000-00000000000{number}" for number in range(3))


async def in_tiers(scene: Scene) -> dict[str, Task]:
    """Tiers are configured; a session runs, and an elastic task that is shortened for one that waits."""
    store = scene.store
    tiers = {"fast": Tier(seconds=3), "slow": Tier(seconds=30, limit=1)}
    policy = stored_policy(msgspec.structs.replace(store.settings, tiers={**tiers}))
    await store.connection.run("configure", SCHEMA, pack(policy), 1, "token")
    await store.workers.register("in_tiers", capacity=3, task_types=["tiered"])
    await store.submit(NewTask(task_id=ELASTIC, task_type="tiered"))
    for _ in range(2):
        await store.claim("in_tiers", idle=True, acknowledged=[])
    await store.submit(NewTask(task_id=SESSION, task_type="tiered", duration="interactive"))
    await store.submit(NewTask(task_id=SLOW, task_type="tiered", duration="slow"))
    await store.claim("in_tiers", idle=True, acknowledged=[])
    return {task_id: await store.get(task_id) for task_id in (ELASTIC, SESSION)}


async def shortened(scene: Scene) -> object:
    elastic = (await in_tiers(scene))[ELASTIC]
    return await scene.store.shortened("in_tiers", Grant(elastic.task_id, elastic.fence))


async def attach(scene: Scene) -> object:
    await in_tiers(scene)
    await scene.store.attach(SESSION, "client", 5_000)
    return "attached"


async def take_frames(scene: Scene) -> object:
    task = (await in_tiers(scene))[SESSION]
    await scene.store.attach(SESSION, "client", 1_000)
    await scene.store.send_frame(SESSION, "hello")
    frames = await scene.store.take_frames("in_tiers", Grant(SESSION, task.fence))
    return [frame.frame for frame in frames][:1]


async def release(scene: Scene) -> object:
    task = by_type(scene, "draw")
    return await scene.store.release("w", Grant(task.task_id, task.fence))


async def renew(scene: Scene) -> object:
    lease = await scene.store.limits.acquire("gpu", lease_id="renewed")
    return (await scene.store.limits.renew(lease, 60_000)).fence == lease.fence


async def claim(scene: Scene) -> object:
    scene.clock.pass_seconds(11)
    await scene.store.limits.release(await scene.store.limits.acquire("gpu", lease_id="x"))
    return len((await scene.store.claim("w", 4, request="r1")).tasks)


async def recorded(scene: Scene) -> object:
    entries: Any = await scene.store.connection.client.xrange(scene.store.connection.keys.key("events"))
    return await scene.store.run("recorded", entries[-1][0].decode() if entries else "")


async def tick(scene: Scene) -> object:
    scene.clock.now = BEGAN + 60_000
    answer = await scene.store.crons.tick("cron", BEGAN, scene.clock.now, scene.new[0])
    assert answer, "the cron has moved, but its task was not submitted"
    assert await scene.store.crons.last("cron") == (scene.clock.now, scene.clock.now)
    return answer


async def confirm(scene: Scene) -> None:
    await scene.store.declare("code", {"draw": TaskSettings()}, {}, {"picture": (("draw",),)})
    assert await scene.store.confirm(["draw"], ["picture"])
    assert not await scene.store.confirm(["draw", "gone"], [])


async def delete_limits(scene: Scene) -> None:
    unused: dict[str, Slots | Rate] = {
        "spare": Slots(limit=1),
        "rare": Rate(count=1, period_seconds=10, burst=2),
    }
    for name, limit in unused.items():
        await scene.store.limits.set(name, limit, shared=True)
        await scene.store.limits.delete(name)


async def declare(scene: Scene) -> None:
    types = {"draw": TaskSettings(limits={"gpu": 1, "tpu": 1}), "echo": TaskSettings(max_retries=1)}
    await scene.store.declare("file", types, {"gpu": Slots(limit=4), "tpu": Slots(limit=1)})


async def expire(scene: Scene) -> object:
    scene.clock.pass_seconds(100)
    await scene.store.expire()
    return None


async def age(scene: Scene) -> object:
    scene.clock.pass_seconds(1300)
    await scene.store.promote()
    return None


async def bury(scene: Scene) -> None:
    scene.clock.pass_seconds(3_601)
    await scene.store.upkeep.bury()


async def forget(scene: Scene) -> None:
    scene.clock.pass_seconds(31 * 86_400)
    await scene.store.upkeep.forget()


async def sweep(scene: Scene) -> object:
    """The record of a task has expired."""
    connection = scene.store.connection
    await connection.client.unlink(connection.keys.key("task", scene.dead))
    return await scene.store.upkeep.sweep()


async def inspect(scene: Scene) -> None:
    """Memory is full: the next act removes what finished a while ago."""
    client = scene.store.connection.client
    await scene.store.cancel(scene.queued)
    scene.clock.pass_seconds(100)
    await client.config_set("maxmemory", "1")
    try:
        await scene.store.upkeep.inspect()
    finally:
        await client.config_set("maxmemory", "0")
    await scene.store.upkeep.forget()


async def create_key(scene: Scene) -> None:
    scene.clock.pass_seconds(100 * 86_400)  # the old one goes
    new = await scene.store.api_keys.create("app", ["submit"], tenant="acme")
    assert await usable_key(scene.store, new.key_text)


async def save_forecast(scene: Scene) -> None:
    await scene.store.upkeep.elect("me", 5_000)
    fields = {"head": {"at": scene.clock.now}}
    assert await scene.store.estimates.save_forecast("me", fields, 60_000)


async def learn(scene: Scene) -> None:
    await scene.store.upkeep.elect("me", 5_000)
    assert await scene.store.estimates.learn("me", {"durations": "some", "old": ""})


async def estimates_of_job(scene: Scene) -> None:
    job_id, _ = await begin_job(scene)
    assert await scene.store.jobs.estimates.remaining(job_id) is None, "there is no forecast"


async def estimates_of(scene: Scene) -> None:
    assert await scene.store.estimates_of(scene.queued, scene.dead) == {}, "there is no forecast"


STORY = NewJob(
    feature_name="story",
    stages=[[NewStep("a", "step"), NewStep("b", "step")], [NewStep("c", "step")]],
    max_wait_seconds=10,
    idempotency_key="j",
)


async def begin_job(scene: Scene) -> tuple[str, list[Task]]:
    """A job of which both steps of the first stage run."""
    job_id = (await scene.store.jobs.submit(STORY)).job_id
    await scene.store.workers.register("steps", capacity=2, task_types=["step"])
    return job_id, (await scene.store.claim("steps", 2)).tasks


async def complete_stage(scene: Scene) -> None:
    """The last result of a stage opens the next one."""
    scene.job = scene.job or await begin_job(scene)
    reports = [Completed(task.task_id, task.fence, task.step) for task in scene.job[1]]
    assert await scene.store.complete("steps", *reports) == [State.COMPLETED] * 2
    assert (await scene.store.jobs.get(scene.job[0])).current_step_index == 2


async def fail_job(scene: Scene) -> None:
    scene.job = scene.job or await begin_job(scene)
    reports = [Failed(task.task_id, task.fence, retriable=False) for task in scene.job[1]]
    assert await scene.store.fail("steps", *reports) == [State.FAILED] * 2
    assert (await scene.store.jobs.get(scene.job[0])).status is JobStatus.FAILED


async def cancel_job(scene: Scene) -> None:
    scene.job = scene.job or await begin_job(scene)
    await scene.store.jobs.cancel(scene.job[0])


async def resume_job(scene: Scene) -> None:
    if not scene.job:
        scene.job = (await scene.store.jobs.submit(STORY)).job_id, []
        scene.clock.pass_seconds(11)
        await scene.store.promote()
    with contextlib.suppress(errors.NotResumable):  # it runs again already
        await scene.store.jobs.resume(scene.job[0])
    assert (await scene.store.jobs.get(scene.job[0])).status is JobStatus.PENDING


ACTS: dict[str, Callable[[Scene], Awaitable[Any]]] = {
    "submit": submit,
    "claim": claim,
    "complete": complete,
    "complete and drop": complete_and_drop,
    "fail": fail,
    "release": release,
    "expire": expire,
    "expire a worker": lambda s: s.store.expire("w"),
    "crash": crash,
    "progress": progress,
    "extend": lambda s: s.store.extend("w", Grant(s.running[0].task_id, s.running[0].fence), 10**7),
    "shortened": shortened,
    "take_frames": take_frames,
    "attach": attach,
    "promote": age,
    "renew": renew,
    "cancel queued": lambda s: s.store.cancel(s.queued),
    "cancel executing": lambda s: s.store.cancel(by_type(s, "draw").task_id),
    "replay": lambda s: s.store.replay(s.dead, {"width": 2}),
    "promotions": lambda s: s.store.promotions(),
    "purge": lambda s: s.store.purge(s.dead),
    "show_limits": lambda s: s.store.limits.get("gpu"),
    "acquire": lambda s: s.store.limits.acquire("gpu", lease_id="l"),
    "set_limit": lambda s: s.store.limits.set("disk", Slots(limit=3)),
    "confirm": confirm,
    "delete_limit": delete_limits,
    "declare": declare,
    "pause": lambda s: s.store.limits.pause("gpu"),
    "pause type": lambda s: s.store.pause_type("draw"),
    "register": lambda s: s.store.workers.register("idle", capacity=3),
    "heartbeat": lambda s: s.store.workers.heartbeat("w"),
    "stall": lambda s: s.store.workers.stall("w", "1", [by_type(s, "draw").fence]),
    "drain": lambda s: s.store.workers.drain("idle"),
    "configure": lambda s: s.store.open(),
    "recorded": recorded,
    "tick": tick,
    "last_tick": lambda s: s.store.crons.last("new"),
    "submit_job": lambda s: s.store.jobs.submit(STORY),
    "complete a stage": complete_stage,
    "fail a stage": fail_job,
    "cancel_job": cancel_job,
    "estimates_of": estimates_of,
    "estimates_of_job": estimates_of_job,
    "resume_job": resume_job,
    "elect": lambda s: s.store.upkeep.elect("me", 5_000),
    "save_forecast": save_forecast,
    "learn": learn,
    "bury": bury,
    "forget": forget,
    "sweep": sweep,
    "sample": lambda s: s.store.series.sample(),
    "add_counts": lambda s: s.store.metrics.add("1-a", {"requests:200:/task": 1}, 3),
    "show_ages": lambda s: s.store.metrics.read(),
    "inspect": inspect,
    "audit": lambda s: s.store.audit.record("ann", "set_limit", "gpu", {"limit": 1}, {"limit": 2}),
    "create_key": create_key,
    "rotate_key": lambda s: s.store.api_keys.rotate(s.key, 60),
    "revoke_key": lambda s: s.store.api_keys.revoke(s.key),
    "use_key": lambda s: s.store.api_keys.note_use(s.key),
    "make_ticket": lambda s: s.store.tickets.make(ANN),
    "take_ticket": lambda s: s.store.tickets.take(s.ticket),
    "spend_key": lambda s: s.store.api_keys.spend(s.key, 1, Rate(count=9, period_seconds=1, burst=9)),
}
