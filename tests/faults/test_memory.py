"""A server that is out of memory takes no new work, but lets work end."""

import pytest

from fairlead import errors
from fairlead.states import State
from fairlead.store.doctor import examine
from fairlead.store.reports import Completed
from fairlead.store.store import Store
from fairlead.task import NewTask
from tests.servers import running


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_full_server_refuses_submits_and_goes_on_with_the_rest(kind: str) -> None:
    with running(kind, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction") as server:
        async with Store.connect(server.url, "full") as store:
            await store.workers.register("w", capacity=50)
            big = {"text": "x" * 50_000}
            with pytest.raises(errors.StoreUnavailable, match="out of memory"):
                for _ in range(1000):
                    await store.submit_one(NewTask(task_type="echo", parameters=big))
            tasks = (await store.claim("w", 50)).tasks
            assert tasks
            answers = await store.complete("w", *[Completed(task.task_id, task.fence) for task in tasks])
            assert set(answers) == {State.COMPLETED}
            assert await examine(store.connection) == []
