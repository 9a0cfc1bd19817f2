"""The example of an AI gateway under 200 jobs of all plans: its limits, its order, how busy services are."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from fairlead.settings.loading import load_settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.compose_stack import EXAMPLE, make_compose
from tests.servers import running
from tests.system.ai_gateway import TIGHTEST, play

FASTER = 300  # than in life: a minute takes 200 ms
LEAST_BUSY = 90  # percent of the time in which jobs wait


def run(options: Options) -> None:
    jobs = options.sized(200)
    print(f"pipeline: seed {options.seed}, {jobs} jobs", flush=True)
    figures = asyncio.run(_serve(options.seed, jobs))
    print(figures)
    assert figures["percent_busy_while_jobs_wait"][TIGHTEST] > LEAST_BUSY
    means = figures["mean_job_seconds"]
    assert means["enterprise"] < means["pro"] < means["free"], means
    print(f"kept in {keep('pipeline', figures)}")


async def _serve(seed: int, jobs: int) -> dict[str, Any]:
    with running("valkey") as server, tempfile.TemporaryDirectory() as folder:
        compose = make_compose(server.url, Path(folder))
        settings = load_settings(EXAMPLE / "fairlead.toml", compose.environment)
        async with Store.connect(server.url, settings.engine.namespace, settings) as store:
            figures = await play(compose, store, seed, jobs=jobs, faster=FASTER)
            breaches = await examine(store.connection)
            assert not breaches, breaches
            return figures
