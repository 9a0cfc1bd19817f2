"""For tests of your own: run handlers inline, a private gateway, a clock that you move.

from fairlead.testing import FakeClock, private, run_inline

async def test_draws() -> None:
    assert await run_inline(draw, prompt="a robot") == {"picture": "a robot"}

async def test_draws_over_the_queue() -> None:
    async with private(fl), fl.worker():
        task = await draw.submit(prompt="a robot")
        assert await task.result(timeout=10) == {"picture": "a robot"}
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

import msgspec
from msgspec.structs import replace

from fairlead.app.app import Fairlead
from fairlead.app.function import TaskFunction
from fairlead.checks import to_json
from fairlead.client.target import Target
from fairlead.model.priority import Priority
from fairlead.model.reports import Frame
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.doctor.snapshot import Breach
from fairlead.worker.context import Context, HandlerMessage

R = TypeVar("R")
S = ParamSpec("S")
START = 1_700_000_000_000  # ms: the first time of a fake clock
MOMENT = 0.1  # seconds


class FakeClock:
    """The store's time, which changes only when you advance it."""

    def __init__(self, now_ms: int = START) -> None:
        self.now_ms = now_ms

    def __call__(self) -> str:
        return str(self.now_ms)

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)


@dataclass
class Inline:
    """What a handler said while it ran inline, and what it reads: the frames of an interactive task."""

    frames: Sequence[Any] = ()
    progress: list[tuple[float, str]] = field(default_factory=list)
    output: list[Any] = field(default_factory=list)
    extended: list[float] = field(default_factory=list)

    def hear(self, said: HandlerMessage) -> None:
        if said.kind == "progress":
            self.progress.append((said.value, said.message))
        else:
            (self.output if said.kind == "output" else self.extended).append(said.value)

    def reach_deadline(self) -> None:
        """The deadline of its tier passes: from any thread, while the handler runs."""
        self.context.learn(self.context.deadline_ms, True)

    def run(self, task: Task, loop: asyncio.AbstractEventLoop | None) -> Context:
        """For one run; `loop`: where its handler runs, None: in a thread."""
        self.context = Context(task, self.hear, loop=loop, fetch_frames=self._fetch if self.frames else None)
        return self.context

    def _fetch(self, after: int) -> "Future[list[Frame]]":
        fetched: Future[list[Frame]] = Future()
        frames = [msgspec.json.decode(to_json("frame", frame)) for frame in self.frames]
        fetched.set_result([Frame(seq, frame) for seq, frame in enumerate(frames, 1) if seq > after])
        return fetched


@overload
async def run_inline(function: TaskFunction[..., S, Any, R], *args: S.args, **kwargs: S.kwargs) -> R: ...
@overload
async def run_inline(
    function: TaskFunction[..., ..., Any, R], *args: Any, said: Inline, **kwargs: Any
) -> R: ...
async def run_inline(
    function: TaskFunction[..., ..., Any, R], *args: Any, said: Any = None, **kwargs: Any
) -> R:
    """Runs a handler here and now, as a worker would: parameters and result go through JSON and are checked.

    What it raises comes out as it is. `said` collects progress and output, and has the frames of its client.
    """
    new = function.new(*args, **kwargs)
    handler = function.handler
    arguments = handler.parameters.checked(msgspec.json.decode(to_json("parameters", new.parameters)))
    if handler.parameters.context:
        loop = asyncio.get_running_loop() if handler.is_async else None
        arguments[handler.parameters.context] = (said or Inline()).run(_as_claimed(new), loop)
    call = handler.function if handler.is_async else partial(asyncio.to_thread, handler.function)
    result: R = msgspec.json.decode(to_json("result", await call(**arguments)))
    return result


@asynccontextmanager
async def private(app: Fairlead, clock: Callable[[], str] | None = None) -> AsyncIterator[Fairlead]:
    """`async with fl:` on a private engine in a temporary folder, removed afterwards.

    With a `FakeClock` the store's time is yours: delays, ageing, back-off and leases pass when you say so;
    `await fl.store.promote()` then does what is due. Every invariant is checked at the end.
    """
    target = app.target
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        app.target = Target(data=str(folder), config=target.config)
        try:
            async with app:
                if clock:
                    app.store.clock, app.store.settings = clock, _attentive(app.store.settings)
                yield app
                breaches = await check(app)
                assert not breaches, breaches
        finally:
            app.target = target


async def check(app: Fairlead) -> list[Breach]:
    """What `fairlead doctor` finds: broken invariants, which there must never be."""
    now = app.store.clock()
    return await examine(app.store.connection, now_ms=int(now) if now else None)


def _attentive(settings: Settings) -> Settings:
    """Frequent heartbeats: a worker that a leap of the clock declared dead registers again at once."""
    beats = max(2, round(settings.worker_ttl_ms / 1000 / MOMENT))
    worker = replace(settings.worker, heartbeat_seconds=MOMENT, missed_heartbeats=beats)
    return replace(settings, worker=worker)


def _as_claimed(new: NewTask) -> Task:
    seconds = 600 if new.timeout_seconds is None else new.timeout_seconds
    return Task(
        task_id=new.task_id,
        task_type=new.task_type,
        status=State.EXECUTING,
        priority=Priority.MEDIUM,
        effective_priority=Priority.MEDIUM,
        parameters=dict(new.parameters),
        created_at=START,
        started_at=START,
        deadline=START + round(seconds * 1000),
        timeout_ms=round(seconds * 1000),
        max_retries=0,
        fence=1,
        user_id=new.user_id,
    )
