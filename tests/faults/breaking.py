"""Scripts that break in the middle: the k-th call to the server fails."""

from collections.abc import Sequence

from fairlead.errors import FairleadError, StoreFault, StoreFull
from fairlead.store.connection import Answer, Argument, Connection
from fairlead.store.store import Store

#: The last argument selects the call that fails, so that the script is the same for all calls.
FAILING = (
    "(function() local left = tonumber(table.remove(arguments)) return function(...) left = left - 1 "
    'if left == 0 then error("planted fault") end return redis.call(...) end end)()'
)


class Breaking(Connection):
    """The same as another one, but the k-th call of every act fails."""

    def __init__(self, healthy: Connection, k: int) -> None:
        super().__init__(healthy.route, healthy.keys, FAILING)
        self.shared, self.membership = healthy.shared, healthy.membership
        self.answer_within = healthy.answer_within
        self.k = k

    async def run(self, act: str, *arguments: Argument) -> Answer:
        return await super().run(act, *arguments, self.k)

    async def run_each(self, *calls: Sequence[Argument]) -> tuple[list[Answer | FairleadError], bool]:
        answers: list[Answer | FairleadError] = []
        for act, *arguments in calls:
            try:
                answers.append(await self.run(str(act), *arguments))
            except (StoreFull, StoreFault) as problem:
                answers.append(problem)
        return answers, False


def plant(store: Store, connection: Connection) -> None:
    store.connection = connection
