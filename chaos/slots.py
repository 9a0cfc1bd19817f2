"""Processes race for slots in a folder and on a real S3 server, and are killed while they hold them."""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.object_store import running_object_store
from tests.slots import race
from tests.waiting import wait_until

PROCESSES = 64
LIMITS = (1, 2, 4, 8)


def run(options: Options) -> None:
    kills = options.sized(100)
    print(f"slots: seed {options.seed}, {PROCESSES} processes, {kills} kills for each limit", flush=True)
    figures: dict[str, Any] = {"seed": options.seed, "processes": PROCESSES}
    with tempfile.TemporaryDirectory() as folder:
        for store in _folder(Path(folder)), _s3():
            with store as (url, environment):
                for limit in LIMITS:
                    records = Path(folder) / f"{url.partition(':')[0]}-{limit}"
                    records.mkdir()
                    found = asyncio.run(
                        _play(
                            race.Race(
                                f"{url}/{limit}",
                                records,
                                limit,
                                PROCESSES,
                                kills,
                                options.seed,
                                environment=environment,
                            )
                        )
                    )
                    figures[records.name] = found
                    print(records.name, found, flush=True)
    print(f"kept in {keep('slots', figures)}")


async def _play(one: race.Race) -> dict[str, Any]:
    raced = await race.run(one)
    assert raced.most_at_once <= one.limit, raced.figures
    assert not raced.shared_slots, raced.shared_slots[:5]
    await wait_until(one.are_free)
    return raced.figures


@contextmanager
def _folder(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield f"file://{folder}/slots", {}


@contextmanager
def _s3() -> Iterator[tuple[str, Mapping[str, str]]]:
    with running_object_store() as store:
        os.environ.update(store.environment)
        yield store.new_url(), store.environment
