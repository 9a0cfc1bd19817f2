"""The content of a task may be large: acts that do not need it do not read it."""

from collections.abc import Awaitable, Callable

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.connections import with_call
from tests.store.namespace import claim_one, new

#: Calls the server, unless it would read what a client, a handler or an error brought.
BLIND = """(function()
  local reads = {HGET = true, HMGET = true}
  local content = {parameters = true, result = true, error = true, progress = true}
  return function(command, key, ...)
    if string.find(key or "", ":output:") and command ~= "PEXPIRE" then error("reads the output") end
    if string.find(key or "", ":task:") and command == "HGETALL" then error("reads the content") end
    for _, field in ipairs(reads[command] and {...} or {}) do
      if content[field] then error("reads " .. field) end
    end
    return redis.call(command, key, ...)
  end
end)()"""

ACTS: dict[str, Callable[[Store, Task], Awaitable[object]]] = {
    "heartbeat": lambda store, t: store.workers.heartbeat("w"),
    "extend": lambda store, t: store.extend("w", Grant(t.task_id, t.fence), 10**7),
    "progress": lambda store, t: store.progress("w", Progress(t.task_id, t.fence, 0.5)),
    "complete": lambda store, t: store.complete("w", Completed(t.task_id, t.fence, "done")),
    "fail": lambda store, t: store.fail("w", Failed(t.task_id, t.fence)),
    "fail for good": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, retriable=False)),
    "crash": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, crashed=True)),
    "release": lambda store, t: store.release("w", Grant(t.task_id, t.fence)),
    "cancel": lambda store, t: store.cancel(t.task_id),
    "expire a worker": lambda store, t: store.expire("w"),
    "promote": lambda store, t: store.promote(),
    "explain": lambda store, t: store.explain(t.task_id),
}


@pytest.fixture
async def running(store: Store, clock: Clock) -> Task:
    """A task on its second run, with something of everything that may be large, and one that waits."""
    await store.workers.register("w", capacity=5)
    await store.submit_one(new(parameters={"a": "x" * 250_000}))
    task = await claim_one(store)
    await store.progress("w", Progress(task.task_id, task.fence, 0.1, "on", ["chunk"]))
    await store.fail("w", Failed(task.task_id, task.fence, message="no", jitter=0))
    clock.pass_seconds(1)
    task = await claim_one(store)
    await store.progress("w", Progress(task.task_id, task.fence, 0.1, "on", ["chunk"]))
    await store.submit_one(new(priority="low", delay_seconds=5))
    clock.pass_seconds(6)
    return task


@pytest.fixture
def blind(store: Store, running: Task) -> Store:
    connection = with_call(store.connection, BLIND)
    return Store(connection, store.settings, store.clock)


@pytest.mark.parametrize("name", ACTS)
async def test_an_act_does_not_read_the_content_of_the_task(
    blind: Store, store: Store, running: Task, name: str
) -> None:
    await ACTS[name](blind, running)


async def test_a_claim_gives_the_content_and_so_it_reads_it(blind: Store, running: Task) -> None:
    with pytest.raises(errors.StoreFault, match="reads the content"):
        await blind.claim("w")


async def test_a_claimed_task_comes_whole_also_when_time_moved_it_in_the_same_act(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w")
    parameters = {"a": "x" * 100_000}
    await store.submit_one(new(parameters=parameters, delay_seconds=5, user_id="ann", trace_id="t"))
    clock.pass_seconds(5)
    task = await claim_one(store)
    assert (task.parameters, task.user_id, task.trace_id) == (parameters, "ann", "t")
    assert task == await store.get(task.task_id)
