"""An act works on the data that its caller knows, or on nothing: the store itself sees to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from fairlead import errors
from fairlead.model.key import Identity
from fairlead.settings import Slots
from fairlead.store.monitor import Monitor
from fairlead.store.scripts import act, names
from fairlead.store.store import Store
from tests.connections import connected
from tests.servers import Server
from tests.store.namespace import claim_one, everything, key_names, new, raw
from tests.waiting import wait_until

HOLD = 20  # ms
ANN = Identity("abcd1234", "ann", ("read",))


@pytest.fixture
async def others(server: Server) -> AsyncIterator[Callable[[Store], Store]]:
    """Opens more stores on the namespace of another one; they know no epoch yet."""
    made: list[Store] = []

    def make(store: Store) -> Store:
        namespace = store.connection.keys.namespace
        made.append(Store(connected(server.url, namespace), store.settings, store.clock))
        return made[-1]

    yield make
    for store in made:
        await store.close()


async def lose(store: Store) -> None:
    prefix = store.connection.keys.prefix
    await raw(store).delete(*[prefix + name for name in await key_names(store)])


async def go_back(store: Store) -> None:
    """To one act before the last that this store has made."""
    await raw(store).hincrby(store.connection.keys.meta, "beat", -1)


async def standing(store: Store) -> str:
    try:
        await store.check_open()
    except errors.StoreLost as problem:
        return problem.standing
    return "open"


def test_every_act_is_guarded_except_those_that_deal_with_losses() -> None:
    assert [name for name in names() if act(name).guard == "off"] == ["accept", "restore", "seal"]


async def test_every_act_that_writes_raises_the_beat_and_one_that_writes_nothing_does_not(
    store: Store,
) -> None:
    async def beat() -> int:
        return int(await raw(store).hget(store.connection.keys.meta, "beat"))

    before = await beat()
    await store.submit_one(new())
    assert await beat() == before + 1
    await store.stats()
    assert await beat() == before + 1
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w")
    assert await beat() == before + 3
    assert store.connection.membership.known[1] == before + 3


async def test_an_act_of_a_client_that_knew_more_is_refused_and_changes_nothing(store: Store) -> None:
    await store.submit_one(new())
    await go_back(store)
    before = await everything(store)
    with pytest.raises(errors.StoreLost, match="fairlead open --restored"):
        await store.submit_one(new())
    assert await everything(store) == before


@pytest.mark.parametrize("kind", ["one that knew more", "one that knows nothing"])
async def test_a_socket_ticket_is_neither_made_nor_used_up_after_a_loss(
    store: Store, others: Callable[[Store], Store], kind: str
) -> None:
    ticket = await store.tickets.make(ANN)
    await go_back(store)
    caller = store
    if kind == "one that knows nothing":
        await Monitor(store).check()  # seals it
        caller = others(store)
    before = await everything(store)
    for act_of in (partial(caller.tickets.make, ANN), partial(caller.tickets.take, ticket)):
        with pytest.raises(errors.StoreLost, match="fairlead open --restored"):
            await act_of()
    assert await everything(store) == before


async def test_an_empty_store_keeps_no_socket_ticket(store: Store) -> None:
    await lose(store)
    with pytest.raises(errors.StoreLost, match="fairlead open --new"):
        await store.tickets.make(ANN)
    assert await key_names(store) == []


async def test_several_acts_of_one_trip_are_refused_each(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    task = await claim_one(store)
    await store.report("w", claim=1)
    await go_back(store)
    before = await everything(store)
    with pytest.raises(errors.StoreLost):
        await store.report("w", claim=1)
    with pytest.raises(errors.StoreLost):
        await store.get(task.task_id)
    assert await everything(store) == before


async def test_an_empty_store_is_refused_by_clients_that_knew_it_and_not_opened(store: Store) -> None:
    await lose(store)
    for act_of in (store.open, store.stats, store.check_open):
        with pytest.raises(errors.StoreLost, match="fairlead open --new"):
            await act_of()
    assert await key_names(store) == []


async def test_a_namespace_that_another_client_opened_meanwhile_is_a_different_one(
    store: Store, others: Callable[[Store], Store]
) -> None:
    await lose(store)
    other = others(store)
    await other.open()
    await other.submit_one(new())
    with pytest.raises(errors.StoreLost, match="another namespace"):
        await store.submit_one(new())
    await store.epochs.seal()  # it may be healthy, and not ours
    await other.submit_one(new())


async def test_data_that_is_back_is_used_again(store: Store) -> None:
    await store.submit_one(new())
    client, meta = raw(store), store.connection.keys.meta
    kept = await client.dump(meta)
    await client.delete(meta)
    assert await standing(store) == "gone"
    await client.restore(meta, 0, kept)
    assert await standing(store) == "open"
    await store.submit_one(new())


# Sealed for everybody


@pytest.mark.parametrize("loss", [lose, go_back])
async def test_a_loss_that_one_has_noticed_closes_it_to_all(
    store: Store, others: Callable[[Store], Store], loss: Callable[[Store], Awaitable[None]]
) -> None:
    await store.submit_one(new())
    await loss(store)
    await Monitor(store).check()
    ignorant = others(store)
    with pytest.raises(errors.StoreLost, match="fairlead open"):
        await ignorant.open()
    with pytest.raises(errors.StoreLost):
        await ignorant.stats()
    await ignorant.epochs.accept("new" if loss is lose else "restored", HOLD)
    await wait_until(lambda: _is_accepted(ignorant))
    await ignorant.open()


async def test_nothing_is_sealed_without_a_loss(store: Store) -> None:
    before = await everything(store)
    await store.epochs.seal()
    assert await everything(store) == before


# Accepted


async def test_the_remaining_data_decides_how_it_can_be_accepted(store: Store) -> None:
    with pytest.raises(errors.InvalidInput, match="not empty"):
        await store.epochs.accept("new", HOLD)
    await lose(store)
    with pytest.raises(errors.InvalidInput, match="is empty"):
        await store.epochs.accept("restored", HOLD)


async def test_after_it_was_accepted_a_process_joins_and_fences_continue(
    live_store: Store, others: Callable[[Store], Store]
) -> None:
    await live_store.workers.register("w")
    await live_store.submit_one(new())
    fence = (await claim_one(live_store)).fence
    await lose(live_store)
    operator = others(live_store)
    await operator.epochs.accept("new", HOLD)
    await wait_until(lambda: _is_accepted(live_store))
    with pytest.raises(errors.StoreLost, match="try again"):
        await live_store.submit_one(new())
    await live_store.open()
    await live_store.workers.register("w")
    await live_store.submit_one(new())
    # a minute ahead of this server's clock: the previous server may have had another clock
    assert (await claim_one(live_store)).fence > fence + 59_000_000


async def _is_accepted(store: Store) -> bool:
    """And all leases from before have ended."""
    try:
        await store.epochs.check()
    except errors.StoreLost as problem:
        return problem.standing == "reopened"
    return True


async def test_it_opens_when_all_leases_from_before_have_ended(open_store: Callable[..., Store]) -> None:
    store = open_store()
    await store.open()
    await lose(store)
    await Monitor(store).check()
    assert 30 < await store.epochs.accept("new", 31_000) <= 31
    with pytest.raises(errors.StoreLost, match="was opened again: work continues within 31 s"):
        await store.open()
    await raw(store).hset(store.connection.keys.meta, "opens_at", 1)
    await store.open()
    await store.submit_one(new())
    assert await raw(store).hget(store.connection.keys.meta, "opens_at") is None


async def test_one_line_is_logged_for_a_loss_although_opening_takes_a_while(
    live_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = Monitor(live_store)
    await lose(live_store)
    await monitor.check()
    known = live_store.connection.membership.known
    await live_store.epochs.accept("new", 31_000)
    live_store.connection.membership.epoch, live_store.connection.membership.beat = known
    await monitor.check()
    assert await standing(live_store) == "opening"
    assert [one.getMessage().split()[:2] for one in caplog.records] == [["store_lost", "standing=gone"]]
    await raw(live_store).hset(live_store.connection.keys.meta, "opens_at", 1)
    await live_store.open()


async def test_the_monitor_reports_a_loss_once_and_joins_when_it_was_accepted(
    live_store: Store, others: Callable[[Store], Store]
) -> None:
    reports: list[str] = []

    async def report(problem: errors.StoreLost | None) -> None:
        reports.append(problem.standing if problem else "")

    live_store.rejoin = live_store.open
    monitor = Monitor(live_store, report)
    await monitor.check()
    await lose(live_store)
    for _ in range(3):
        await monitor.check()
    assert reports == ["gone"]
    await others(live_store).epochs.accept("new", HOLD)

    async def joined() -> bool:
        await monitor.check()
        return await standing(live_store) == "open"

    await wait_until(joined)
    assert (reports[0], reports[-1]) == ("gone", "")
    await live_store.submit_one(new())
