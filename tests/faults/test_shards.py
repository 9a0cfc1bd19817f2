"""Three namespaces on the three shards of a real cluster: a shard fails over, another one's slot is moved."""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tests.api.serving import serving
from tests.clusters import Cluster, cluster
from tests.faults.shards import KEPT, scene
from tests.servers import binary
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]


def need_server(kind: str) -> None:
    if not binary(kind):
        words = f"no server for {kind}: `scripts/test-servers` installs it"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_namespaces_survive_a_failover_and_a_move_under_load(kind: str, tmp_path: Path) -> None:
    need_server(kind)
    async with cluster(kind, *KEPT) as deployed:
        async with scene(deployed, tmp_path) as made:
            await made.kill_primary(0)
            await made.move(1, random.Random(1))
        if kind == "valkey":
            await a_gateway_starts_without_a_shard(deployed, made.names, tmp_path)


async def a_gateway_starts_without_a_shard(deployed: Cluster, names: Sequence[str], folder: Path) -> None:
    """It serves the other namespaces, and that one when it is back."""
    shard = [deployed.primaries[0], deployed.replicas[0]]
    for node in shard:
        node.kill()
    with serving(deployed.url, names[0], folder) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as http:

            async def status(name: str) -> int:
                headers = {"fairlead-namespace": name}
                return (await http.get("/api/v1/tasks", headers=headers)).status_code

            assert [await status(name) for name in names] == [503, 200, 200]
            assert (await http.get("/readyz")).json() == {"status": "ready", "not_ready": [names[0]]}
            for node in shard:
                node.start()

            async def is_back() -> bool:
                return await status(names[0]) == 200

            await wait_until(is_back, 60)
