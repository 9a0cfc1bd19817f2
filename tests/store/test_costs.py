"""What an act costs does not grow with the number of task types or customers.

Counted, not timed: the commands that the server carries out within the act, and the words that it hands to
them and gets back. Each broad state is compared with a narrow one that has as many tasks.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import pytest

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.task import NewTask, Task
from fairlead.settings import Admission, Settings, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.connections import with_call
from tests.store.namespace import new, raw

pytestmark = pytest.mark.long

TYPES, LIMITED_TYPES, CUSTOMERS = 300, 87, 1_000
TASKS = 1_000  # that wait in every state
BATCH = 64
WORDS = "words of a test that counts"
OURS = ("fcall", "eval", "evalsha", "info", "incrby")  # what the counting itself costs
COUNTING = f"""
(function(...)
  local reply = redis.call(...)
  redis.call("INCRBY", "{WORDS}", select("#", ...) + (type(reply) == "table" and #reply or 1))
  return reply
end)"""


@pytest.fixture
def settings() -> Settings:
    return Settings(admission=Admission(max_queued=1_000_000, max_queued_per_user=1_000_000))


@dataclass(frozen=True)
class Cost:
    commands: int
    words: int

    def is_about(self, other: "Cost") -> bool:
        """At most a tenth more: a loop over everything broad costs far more."""
        return self.commands <= 1.1 * other.commands and self.words <= 1.1 * other.words


def refused(answers: Iterable[object]) -> list[object]:
    return [answer for answer in answers if isinstance(answer, errors.FairleadError)]


class State:
    """Tasks that wait and tasks that run, and what an act costs there."""

    def __init__(self, store: Store, task: Callable[[int], NewTask]) -> None:
        self.store, self.task = store, task
        self.metered = Store(with_call(store.connection, COUNTING), store.settings, store.clock)
        self.running: list[Task] = []
        self.submitted: list[NewTask] = []

    async def fill(self, tasks: int) -> None:
        await self.store.workers.register("w", capacity=100_000)
        for first in range(0, tasks, BATCH):
            answers = await self.store.submit(*[self.next() for _ in range(min(BATCH, tasks - first))])
            assert not refused(answers)

    async def start(self, tasks: int) -> None:
        while len(self.running) < tasks:
            claimed = await self.store.claim("w", tasks - len(self.running))
            assert claimed.tasks or claimed.again
            self.running += claimed.tasks

    async def idle(self, workers: int) -> None:
        """Workers that serve everything and have found nothing."""
        for number in range(workers):
            await self.store.workers.register(f"idle{number}")
            await self.store.claim(f"idle{number}", idle=True)

    def next(self) -> NewTask:
        self.submitted.append(self.task(len(self.submitted)))
        return self.submitted[-1]

    def take(self, tasks: int) -> list[Completed]:
        """The reports of those that run the longest."""
        ended, self.running = self.running[:tasks], self.running[tasks:]
        return [Completed(task.task_id, task.fence) for task in ended]

    async def cost(self, act: "Act") -> Cost:
        await raw(self.store).set(WORDS, 0)
        before = await self._commands()
        await act(self)
        commands = await self._commands() - before
        return Cost(commands, int(await raw(self.store).getdel(WORDS)))

    async def _commands(self) -> int:
        stats = await raw(self.store).info("commandstats")
        return sum(row["calls"] for name, row in stats.items() if name.removeprefix("cmdstat_") not in OURS)


Act = Callable[[State], Awaitable[object]]
Acts = dict[str, Act]


async def compare(narrow: State, broad: State, acts: Acts) -> None:
    """Of each act the second one is counted: the first may do what has to be done once."""
    for name, act in acts.items():
        costs = []
        for state in (narrow, broad):
            await act(state)
            costs.append(await state.cost(act))
        assert costs[1].is_about(costs[0]), f"{name}: {costs[1]} instead of {costs[0]}"


async def claim(state: State, want: int) -> None:
    claimed = await state.metered.claim("w", want)
    assert len(claimed.tasks) == want
    state.running += claimed.tasks


async def complete(state: State, count: int) -> None:
    answers = await state.metered.complete("w", *state.take(count))
    assert not refused(answers)


async def submit(state: State, count: int) -> None:
    answers = await state.metered.submit(*[state.next() for _ in range(count)])
    assert not refused(answers)


@pytest.fixture
def states(open_store: Callable[..., Store], clock: Clock) -> Callable[..., Awaitable[tuple[State, State]]]:
    """Two states beside each other, a narrow one and a broad one."""

    async def make(*tasks: Callable[[int], NewTask]) -> tuple[State, State]:
        made = []
        for task in tasks:
            store = open_store(clock=clock)
            await store.open()
            made.append(State(store, task))
        narrow, broad = made
        return narrow, broad

    return make


States = Callable[..., Awaitable[tuple[State, State]]]


async def test_an_act_costs_the_same_however_many_types_are_queued(states: States) -> None:
    narrow, broad = await states(lambda n: new(), lambda n: new(f"kind{n % TYPES}"))
    for state in (narrow, broad):
        await state.fill(TASKS)
        await state.start(2 * BATCH)
    acts: Acts = {
        "submit": lambda state: submit(state, 1),
        "claim": lambda state: claim(state, 1),
        "complete": lambda state: complete(state, 1),
        "complete many": lambda state: complete(state, BATCH),
    }
    await compare(narrow, broad, acts)


async def test_a_claim_of_many_costs_by_the_types_that_it_gives_not_by_those_that_wait(
    states: States,
) -> None:
    narrow, broad = await states(lambda n: new(f"kind{n % BATCH}"), lambda n: new(f"kind{n % TYPES}"))
    for state in (narrow, broad):
        await state.fill(TASKS)
        await state.start(BATCH)
    await compare(narrow, broad, {"claim many": lambda state: claim(state, BATCH)})


async def test_an_act_costs_the_same_however_many_types_wait_for_a_full_limit(states: States) -> None:
    gpu = {"gpu": 1}
    narrow, broad = await states(
        lambda n: new(limits=gpu), lambda n: new(f"kind{n % LIMITED_TYPES}", limits=gpu)
    )
    for state in (narrow, broad):
        await state.store.limits.set("gpu", Slots(limit=8))
        await state.fill(TASKS)
        await state.start(8)
        while (await state.store.claim("w")).again:  # those that came before it was full go behind it now
            pass

    async def claim_nothing(state: State) -> None:
        claimed = await state.metered.claim("w")
        assert (claimed.tasks, claimed.again) == ([], False)

    async def complete_and_claim(state: State) -> None:
        await complete(state, 1)
        await claim(state, 1)

    acts: Acts = {
        "submit": lambda state: submit(state, 1),
        "claim nothing": claim_nothing,
        "complete and claim": complete_and_claim,
    }
    await compare(narrow, broad, acts)


def one_running_and_one_waiting(customers: int) -> Callable[[int], NewTask]:
    return lambda n: new(concurrency_group=f"customer-{n % customers}", concurrency_limit=1)


async def explain(state: State) -> None:
    await state.metered.explain(state.submitted[-1].task_id)


async def show_limit(state: State) -> None:
    limit = await state.metered.limits.get(str(state.submitted[-1].concurrency_group))
    assert (limit.active, limit.waiting) == (1, 1)


async def complete_while_somebody_is_idle(state: State) -> None:
    await complete(state, 1)


async def complete_many_while_somebody_is_idle(state: State) -> None:
    await complete(state, BATCH)


@pytest.mark.parametrize(
    ("few", "idle", "act"),
    [
        (1, 1, explain),
        (1, 1, show_limit),
        (2, 3, complete_while_somebody_is_idle),
        (2 * BATCH, 3 * BATCH, complete_many_while_somebody_is_idle),
    ],
)
async def test_an_act_costs_the_same_for_any_number_of_customers_with_their_own_limit(
    states: States, few: int, idle: int, act: Act
) -> None:
    narrow, broad = await states(*[one_running_and_one_waiting(count) for count in (few, CUSTOMERS)])
    for state, customers in ((narrow, few), (broad, CUSTOMERS)):
        await state.fill(2 * customers)
        await state.start(customers)
        await state.idle(idle)
    await compare(narrow, broad, {act.__name__: act})


async def test_a_submit_costs_the_same_however_many_idle_workers_have_died(
    states: States, clock: Clock
) -> None:
    narrow, broad = await states(lambda n: new(), lambda n: new())
    await narrow.idle(3)
    await broad.idle(300)
    clock.pass_seconds(60)
    for state in (narrow, broad):
        await state.store.workers.register("live")
        await state.store.claim("live", idle=True)
    costs = [await state.cost(lambda state: submit(state, 1)) for state in (narrow, broad)]
    assert costs[1].is_about(costs[0]), costs


async def test_opening_costs_the_same_however_many_limits_there_are(states: States) -> None:
    narrow, broad = await states(one_running_and_one_waiting(1), one_running_and_one_waiting(CUSTOMERS))
    await narrow.fill(1)
    await broad.fill(CUSTOMERS)
    await compare(narrow, broad, {"open": lambda state: state.metered.open()})


async def test_a_worker_with_a_new_profile_does_not_read_all_the_others(store: Store) -> None:
    """What an act adds to the profiles is known to the next act: nobody reads them again."""

    async def read() -> int:
        stats = await raw(store).info("commandstats")
        return int(stats["cmdstat_hgetall"]["calls"])

    await store.submit(new())
    await store.workers.register("host-0", capabilities=["host-0"])
    before = await read()
    for number in range(1, 6):
        await store.workers.register(f"host-{number}", capabilities=[f"host-{number}"])
    assert await read() - before == 5 * 4  # meta, the worker's record, the idle lines, the routes
