"""Many processes want a slot, and holders are killed. The long form is `python -m chaos slots`."""

import random
from pathlib import Path

import pytest

from tests.slots.race import Race, run
from tests.waiting import wait_until


@pytest.mark.timeout(120)
async def test_no_slot_is_shared_while_holders_are_killed(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    on_s3 = url.startswith("s3:")
    environment = request.getfixturevalue("s3").environment if on_s3 else None
    seed, records = random.randrange(1 << 32), tmp_path / "records"
    print(f"seed {seed}")
    records.mkdir()
    race = Race(url, records, limit=2, processes=6, kills=5, seed=seed, environment=environment)
    raced = await run(race)
    assert raced.most_at_once <= race.limit
    assert raced.shared_slots == []
    assert raced.killed_holders
    await wait_until(race.are_free)
