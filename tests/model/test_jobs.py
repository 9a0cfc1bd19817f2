"""Random histories of jobs: the store and the book say the same after every act."""

import random
from collections import Counter

import pytest

from tests.model.job_player import Player
from tests.servers import running

HISTORIES, ACTS = 110, 22
SEEN = {
    *("COMPLETED", "FAILED", "CANCELLED", "resumed", "replayed"),
    *("after RESOURCE_EXHAUSTED", "after oops", "as it was", "by force"),
}


@pytest.mark.timeout(240)
async def test_jobs_in_the_store_follow_the_rules() -> None:
    seen: Counter[str] = Counter()
    with running("valkey") as server:
        for _ in range(HISTORIES):
            seed = random.randrange(1 << 32)
            print("seed", seed)
            async with Player(server.url, seed) as player:
                await player.play(ACTS)
            seen += player.seen
    print(seen)
    assert seen.keys() >= SEEN
