"""The people of the demo: what they submit, and how often. They stop for a while when many wait."""

import asyncio
import random
from dataclasses import dataclass

from fairlead.cli.demo.studio import fl
from fairlead.client.job_backend import jobs_of
from fairlead.errors import FairleadError
from fairlead.model.job import NewJob
from fairlead.model.task import NewTask
from fairlead.store.store import Store

USERS = ("ann", "ben", "dora", "emil", "finn", "gita", "hugo", "ines", "jon", "kim", "leo")
TOPICS = ("a harbour at night", "a lighthouse", "two herons", "an old tram", "rain in Lisbon", "a red kite")


@dataclass(frozen=True)
class Wish:
    """One kind of work, about every `every` seconds, unless `most` wait for its scarcest limit already."""

    name: str
    limit: str
    every: float
    most: int
    at_first: int
    is_job: bool = False
    priorities: tuple[str, ...] = ("high", "medium", "medium", "medium", "medium", "low")


WISHES = (
    Wish("poster", "image_gen", every=6, most=8, at_first=8, is_job=True),
    Wish("film", "render_farm", every=14, most=5, at_first=3, is_job=True),
    Wish("caption", "openai", every=1.7, most=10, at_first=12),
    Wish("thumbnail", "render_farm", every=1.5, most=8, at_first=10, priorities=("medium", "low")),
    Wish("train", "gpu_a100", every=35, most=3, at_first=2, priorities=("low",)),
    Wish("draw", "image_gen", every=50, most=9, at_first=3),
    Wish("publish", "stripe", every=400, most=1, at_first=1),  # of nothing: it fails
    Wish("voice", "tts_voice", every=6, most=4, at_first=3, priorities=("low", "medium")),
)


class Crowd:
    def __init__(self, store: Store, pace: float = 1) -> None:
        self._store = store
        self._pace = pace

    async def begin(self) -> int:
        """So that there is something to see at once; how many tasks and jobs that is."""
        wishes = [wish for wish in WISHES for _ in range(wish.at_first)]
        random.shuffle(wishes)
        for wish in wishes:
            await self._submit(wish)
        return len(wishes)

    async def keep_coming(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for wish in WISHES:
                group.create_task(self._repeat(wish))

    async def _repeat(self, wish: Wish) -> None:
        while True:
            await asyncio.sleep(random.expovariate(1 / wish.every))
            try:
                limit = await self._store.limits.get(wish.limit)
                if limit.waiting < wish.most:
                    await self._submit(wish)
            except FairleadError:
                pass  # the engine may be away for a while, and a limit may have been deleted by hand

    async def _submit(self, wish: Wish) -> None:
        topic, user = random.choice(TOPICS), random.choice(USERS)
        priority = random.choice(wish.priorities)
        wanted = {"topic": topic, "prompt": topic, "text": topic, "pace": self._pace}
        if wish.is_job:
            job = NewJob(feature_name=wish.name, input_data=wanted, user_id=user, priority=priority)
            await jobs_of(self._store).submit(job)
            return
        known = fl.handlers[wish.name].parameters.names
        parameters = {name: value for name, value in wanted.items() if name in known}
        task = NewTask(task_type=wish.name, parameters=parameters, user_id=user, priority=priority)
        await self._store.submit_one(task)
