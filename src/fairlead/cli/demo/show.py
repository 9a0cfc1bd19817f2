"""Runs the studio of the demo beside a gateway, in a namespace of its own.

It shares no limits, task types or workers with applications, whose namespace the gateway serves too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from fairlead.cli.demo.crowd import Crowd
from fairlead.cli.demo.studio import GPU, fl
from fairlead.settings import Promotion, Settings, WorkerSettings
from fairlead.settings.namespaces import NamespaceSettings
from fairlead.settings.processes import MOST_NAMESPACE
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from fairlead.worker.options import WorkerOptions
from fairlead.worker.running import running_worker

ENDING = "-demo"
WORKERS = (
    WorkerOptions(name="gpu-1", capacity=3, reserve=1, capabilities=GPU, grace=0),
    WorkerOptions(name="gpu-2", capacity=3, capabilities=GPU, grace=0),
    WorkerOptions(name="render-1", capacity=16, grace=0),
    WorkerOptions(name="words-1", capacity=8, grace=0),
)
#: Short enough to see them.
SAMPLE = NamespaceSettings(
    promotion=Promotion(low_to_medium_seconds=90, medium_to_high_seconds=180),
    worker=WorkerSettings(heartbeat_seconds=5),
)
AT_ONCE = 0.02  # the pace when nobody watches
LOOK_SECONDS = 0.2


def with_demo(settings: Settings) -> Settings:
    """Those of a gateway that serves the namespace of the demo first: its dashboard shows that one."""
    own, namespace = settings.engine.namespace, settings.engine.namespace[: MOST_NAMESPACE - len(ENDING)]
    parts = NamespaceSettings.__struct_fields__
    others = {own: NamespaceSettings(**{part: getattr(settings, part) for part in parts})}
    return replace(
        settings,
        engine=replace(settings.engine, namespace=namespace + ENDING),
        namespaces=others | settings.namespaces,
        **{part: getattr(SAMPLE, part) for part in parts},
    )


async def run_demo(store: Store) -> None:
    """For as long as somebody watches, that is until it is cancelled."""
    async with _studio(store):
        crowd = Crowd(store)
        print(f"Sample work, in the namespace {store.connection.keys.namespace}: ", end="")
        print(f"{len(WORKERS)} workers, {len(fl.limits)} limits and a crowd with wishes.", flush=True)
        await crowd.begin()
        await crowd.keep_coming()


async def run_demo_once(store: Store) -> None:
    """Until the first wishes are done, quickly, with the verdict of the doctor."""
    async with _studio(store):
        print(f"Sample work, in the namespace {store.connection.keys.namespace}.", flush=True)
        wishes = await Crowd(store, AT_ONCE).begin()
        while await _is_busy(store):
            await asyncio.sleep(LOOK_SECONDS)
    breaches = await examine(store.connection)
    verdict = "every invariant holds" if not breaches else "; ".join(breach.sentence for breach in breaches)
    print(f"All {wishes} wishes are done. The doctor says: {verdict}.", flush=True)


@asynccontextmanager
async def _studio(store: Store) -> AsyncIterator[None]:
    """Its workers, in this process: their handlers only wait."""
    await store.open(govern=True)  # an earlier version of the demo may have had other promotions

    async def declare() -> None:
        types = {name: handler.settings for name, handler in fl.handlers.items()}
        await store.declare("code", types, fl.limits, fl.pipelines)

    await declare()
    async with AsyncExitStack() as stack:
        for options in WORKERS:
            await stack.enter_async_context(running_worker(store, fl.handlers, fl.crons, options, declare))
        yield


async def _is_busy(store: Store) -> bool:
    stats = await store.stats(brief=True)
    return bool(stats.delayed or stats.used_capacity or any(one.depth for one in stats.queues.values()))
