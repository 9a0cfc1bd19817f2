"""Pages of limits by pressure: what they cost does not depend on how many limits there are."""

from fairlead.api.limit_pages import listed
from fairlead.settings import Slots
from fairlead.shapes.limit import LimitsQuery
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from tests.store.namespace import new, raw
from tests.store.test_many import reads

COUNT, WAITED_FOR, PAGE = 400, 100, 20
MOST_READS = 2 * PAGE  # of hashes


async def test_a_page_reads_as_many_limits_as_it_has_and_all_pages_have_each_once(store: Store) -> None:
    names = [f"limit-{number:03}" for number in range(COUNT)]
    for name in names:
        await store.limits.set(name, Slots(limit=1))
    await store.submit(*(new("draw", limits={name: 1}) for name in names[-WAITED_FOR:]))
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    assert await Estimator(store, "me").forecast()
    seen, query, costs = list[str](), LimitsQuery(sort="pressure", limit=PAGE), list[int]()
    while True:
        before = await reads(store)
        limits, cursor = await listed(store, query, None)
        costs.append(await reads(store) - before)
        seen += [limit.name for limit in limits]
        if cursor is None:
            break
        query = LimitsQuery(sort="pressure", limit=PAGE, cursor=cursor)
    assert seen == [*names[-WAITED_FOR:], *names[:-WAITED_FOR]]
    assert costs[0] <= MOST_READS, "the first page does not depend on how many limits there are"
    assert sum(costs) <= 2 * COUNT + 4 * len(costs), "those with a pressure are looked at twice, others once"


async def test_a_search_looks_at_names_alone(store: Store) -> None:
    for number in range(COUNT):
        await store.limits.set(f"limit-{number:03}", Slots(limit=1))
    before = await reads(store)
    limits, _ = await listed(store, LimitsQuery(search="T-39"), None)
    assert [limit.name for limit in limits] == [f"limit-39{digit}" for digit in range(10)]
    assert await reads(store) - before <= MOST_READS
