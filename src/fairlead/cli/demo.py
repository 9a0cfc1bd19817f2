"""Sample work: three users, one GPU, priorities. Small enough to watch, real enough to show the rule.

It runs in a namespace of its own, so it shares no limits, task types or workers with applications.
"""

import asyncio
import random

import uuid_utils

from fairlead.model.reports import Completed
from fairlead.model.task import NewTask, Submitted, Task
from fairlead.settings import Slots
from fairlead.settings.processes import MOST_NAMESPACE
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store

TASKS = (
    ("render", "low", "ann"),
    ("render", "low", "ann"),
    ("render", "medium", "bob"),
    ("chat", "medium", "bob"),
    ("render", "high", "eve"),
    ("chat", "low", "ann"),
    ("chat", "high", "eve"),
    ("render", "medium", "ann"),
)
CAPACITY = 3
ENDING = "-demo"


def demo_namespace(namespace: str) -> str:
    return namespace[: MOST_NAMESPACE - len(ENDING)] + ENDING


async def run_demo(url: str, namespace: str) -> None:
    """On this server, beside this namespace."""
    async with Store.connect(url, demo_namespace(namespace)) as store:
        await _show(store)


async def _show(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    namespace = store.connection.keys.namespace
    print(
        f"Demo, in the namespace {namespace}: a worker with {CAPACITY} slots, and the limit gpu = 1 ", end=""
    )
    print("that every render needs.")
    wanted = [
        NewTask(
            task_type=kind,
            priority=priority,
            user_id=user,
            limits={"gpu": 1} if kind == "render" else {},
        )
        for kind, priority, user in TASKS
    ]
    accepted = [answer for answer in await store.submit(*wanted) if isinstance(answer, Submitted)]
    print(f"Submitted {len(accepted)} tasks.")
    done = await _work(store, {answer.task_id for answer in accepted})
    breaches = await examine(store.connection)
    verdict = "every invariant holds" if not breaches else "; ".join(breach.sentence for breach in breaches)
    print(f"All {done} done. The doctor says: {verdict}.", flush=True)


async def _work(store: Store, expected: set[str]) -> int:
    """The smallest worker: claim what can start, run it, report, claim again."""
    worker = f"demo-{uuid_utils.uuid7()}"
    await store.workers.register(
        worker, capacity=CAPACITY, task_types={kind for kind, _, _ in TASKS}, name="demo"
    )
    done: set[str] = set()
    running: set[asyncio.Task[Task]] = set()
    while not expected <= done:
        claimed = await store.claim(worker, CAPACITY - len(running)) if len(running) < CAPACITY else None
        for task in claimed.tasks if claimed else ():
            print(f"  start   {_words(task)}", flush=True)
            running.add(asyncio.create_task(_run(task)))
        if not running:  # somebody else's task holds what ours need
            await store.workers.wait(worker, 0.2)
            continue
        finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in (one.result() for one in finished):
            await store.complete(worker, Completed(task.task_id, task.fence, {"by": worker}))
            done.add(task.task_id)
            print(f"  done    {_words(task)}", flush=True)
    await store.workers.leave(worker)
    return len(done)


async def _run(task: Task) -> Task:
    await asyncio.sleep(random.uniform(0.1, 0.3))
    return task


def _words(task: Task) -> str:
    return f"{task.task_type:<7} {task.priority.word:<7} of {task.user_id:<4} fence {task.fence}"
