"""Short tasks under six limits, fed so that a few wait and none for long."""

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping

from fairlead.errors import StoreUnavailable
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.faults.history import History, Judge, Verdict
from tests.waiting import wait_until

LIMITS = {"one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16, "gigabytes": 40}


class Load:
    """Feeds tasks of 5 to 50 ms; `needs` says what each accepted one holds while it runs."""

    def __init__(self, store: Store, history: History, dice: random.Random, waiting: int = 20) -> None:
        self.needs: dict[str, Mapping[str, int]] = {}
        self._store = store
        self._history = history
        self._dice = dice
        self._waiting = waiting  # or running, at most

    async def feed(self, enough: Callable[[int], bool], per_second: float = math.inf) -> None:
        """Until `enough` returns true for the number of accepted tasks."""
        began, fed = time.monotonic(), len(self.needs)
        if not self.needs:
            for name, units in LIMITS.items():
                await self._store.limits.set(name, Slots(limit=units))
        while not enough(len(self.needs)):
            room = self._waiting - (len(self.needs) - len(self._history.ended))
            due = (time.monotonic() - began) * per_second - (len(self.needs) - fed)
            if (count := int(min(room, due))) > 0:
                await self._submit([self._task() for _ in range(count)])
            await asyncio.sleep(0.005)

    async def end(self, timeout: float = 40) -> Verdict:
        """Waits for the last of them, and judges what happened to all."""
        await wait_until(lambda: self.needs.keys() <= self._history.ended, timeout, "every task has ended")
        return Judge(LIMITS, self.needs).judge(self._history.events)

    def _task(self) -> NewTask:
        (name,) = self._dice.choices(list(LIMITS)[:-1], list(LIMITS.values())[:-1])
        limits = {name: 1}
        if self._dice.random() < 0.5:
            limits["gigabytes"] = self._dice.randint(1, 4)
        seconds = self._dice.uniform(0.005, 0.05)
        return NewTask(task_type="work", parameters={"seconds": seconds}, limits=limits)

    async def _submit(self, tasks: list[NewTask]) -> None:
        while True:  # with the same ids: a lost answer is no second task
            try:
                await self._store.submit(*tasks)
                break
            except StoreUnavailable:
                await self._store.reopen()
                await asyncio.sleep(0.05)
        self.needs.update((task.task_id, dict(task.limits)) for task in tasks)
