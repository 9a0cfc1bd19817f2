"""A gateway over HTTP, with the methods of the store that clients, the command line and workers use.

What a method does is said there; here, what is different over HTTP.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Unpack

from msgspec.structs import asdict, replace

from fairlead.checks import MOST_BYTES, check_ms, check_name, check_task_id
from fairlead.client.audit import Audit
from fairlead.client.blobs import Blobs
from fairlead.client.bodies import (
    MOST_ITEMS,
    batch_of,
    declared_bodies,
    frame_body,
    in_bodies,
    limit_body,
    none_or_error,
    progress_body,
    result_body,
    stages_body,
    state_or_error,
    submitted_or_error,
    task_body,
)
from fairlead.client.crons import Crons
from fairlead.client.dead_letters import DeadLetters
from fairlead.client.jobs import Jobs
from fairlead.client.limits import Limits
from fairlead.client.live import Live
from fairlead.client.policy import Policy
from fairlead.client.transport import ANSWER_WITHIN, MOST_ANSWER, A, HttpTransport, path
from fairlead.client.workers import Workers
from fairlead.errors import FairleadError, InvalidInput, InvalidSettings, NotAllowed
from fairlead.log.events import EventLog
from fairlead.model.declarations import Origin, declared_limits, declared_types
from fairlead.model.explanation import Explanation
from fairlead.model.forecast import Forecast
from fairlead.model.reports import (
    Claimed,
    Completed,
    Failed,
    Frame,
    Grant,
    Output,
    Progress,
)
from fairlead.model.states import State
from fairlead.model.stats import Stats
from fairlead.model.task import MOST_PER_CALL, NewTask, Submitted, Task, TaskPage
from fairlead.model.task_filter import TaskFilter
from fairlead.model.task_history import TaskHistory
from fairlead.model.worker import latest_first
from fairlead.settings import LimitSettings, Settings, TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.shapes.base import with_time_texts
from fairlead.shapes.dead_letter import PurgeAnswer, ReplayAnswer, ReplayBody
from fairlead.shapes.declaration import ConfirmAnswer, DeclareAnswer, TypeBody
from fairlead.shapes.forecast import ForecastAnswer
from fairlead.shapes.stats import StatsAnswer
from fairlead.shapes.task import (
    BatchAnswer,
    BatchItem,
    CancelAnswer,
    ExplainAnswer,
    FrameAnswer,
    OutputsAnswer,
    TaskAnswer,
    TasksAnswer,
)
from fairlead.shapes.task_history import HistoryAnswer
from fairlead.shapes.task_type import PauseBody, TaskTypeAnswer, TaskTypesAnswer
from fairlead.shapes.worker import (
    Accepted,
    ExpireAnswer,
    ExtendAnswer,
    ExtendBody,
    FramesAnswer,
    FramesBody,
    PollAnswer,
    PollBody,
    ReleaseAnswer,
    ReleaseBody,
    ResultAnswer,
    SayAnswer,
    WorkersAnswer,
)
from fairlead.times import read_time

OF_A_TASK = 16 * 1024  # bytes besides its parameters
SECONDS_PER_TASK = 0.1  # more time for an answer with many tasks in it

log = EventLog("fairlead.client")


class Client(AbstractAsyncContextManager["Client"]):
    """`async with Client(settings) as client:`; `settings.engine` says where, and with which key."""

    def __init__(self, settings: Settings) -> None:
        if settings.engine.url is None or not settings.engine.is_gateway:
            raise InvalidSettings("give the URL of a gateway, such as http://127.0.0.1:8000")
        self.settings = settings
        self.transport = HttpTransport(settings.engine.url, settings.engine.key, settings.engine.namespace)
        self.limits = Limits(self.transport)
        self.workers = Workers(self.transport)
        self.crons = Crons(self.transport)
        self.jobs = Jobs(self.transport)
        self.dead_letters = DeadLetters(self.transport)
        self.blobs = Blobs(self.transport)
        self.live = Live(self.transport)
        self.policy = Policy(self.transport)
        self.audit = Audit(self.transport)
        self.upkeep = None

    async def __aexit__(self, *_: object) -> None:
        await self.transport.http.aclose()

    async def open(self, *, govern: bool = True, declare: bool | None = None) -> None:
        """Nothing to do: the gateway has opened it."""

    async def reopen(self) -> None:
        """Nothing to do: the next call connects again, and the gateway joins its store again."""

    rejoin = reopen

    async def declare(
        self,
        origin: Origin,
        types: Mapping[str, TaskSettings],
        limits: Mapping[str, LimitSettings],
        pipelines: Mapping[str, Stages] | None = None,
    ) -> None:
        """Declares what the code defines, and learns how often a worker must send heartbeats."""
        declared_types(types), declared_limits(limits)  # raises what the store would
        bodies = declared_bodies(
            {
                "limits": {name: limit_body(name, wanted) for name, wanted in limits.items()},
                "types": {name: TypeBody(**asdict(wanted)) for name, wanted in types.items()},
                "pipelines": {name: stages_body(stages) for name, stages in (pipelines or {}).items()},
            }
        )
        try:
            for body in bodies:
                address = path("internal", "declarations")
                rhythm = await self.transport.ask(DeclareAnswer, "PUT", address, body, repeat=True)
        except NotAllowed as problem:
            # a client that only submits has no key for it and needs none: the workers declare their tasks
            log.info("not_declared", problem=str(problem))
            return
        worker = replace(self.settings.worker, heartbeat_seconds=rhythm.heartbeat_seconds)
        lease = replace(self.settings.lease, lease_seconds=rhythm.lease_seconds)
        self.settings = replace(self.settings, worker=worker, lease=lease)

    async def confirm(self, types: Iterable[str], pipelines: Iterable[str]) -> bool:
        rows = [("types", name) for name in types] + [("pipelines", name) for name in pipelines]
        address, all_known = path("internal", "declarations", "confirm"), True
        for start in range(0, len(rows), MOST_ITEMS):
            body: dict[str, list[str]] = {"types": [], "pipelines": []}
            for kind, name in rows[start : start + MOST_ITEMS]:
                body[kind].append(name)
            all_known &= (await self.transport.post(ConfirmAnswer, address, body, repeat=True)).all_known
        return all_known

    async def submit(self, *tasks: NewTask) -> list[Submitted | FairleadError]:
        """Up to 1,000 at once. Every task has its own id, so a request without an answer is repeated."""
        if len(tasks) > MOST_PER_CALL:
            raise InvalidInput("tasks", f"{len(tasks)} at once, at most {MOST_PER_CALL} are accepted")
        batch = batch_of(tasks, task_body)
        rows: list[BatchItem] = []
        address = path("api", "v1", "tasks", "batch")
        for some in in_bodies(batch):
            rows += (await self.transport.post(BatchAnswer, address, {"tasks": some}, repeat=True)).tasks
        return batch.answers(map(submitted_or_error, rows))

    async def submit_one(self, task: NewTask) -> Submitted:
        answer = (await self.submit(task))[0]
        if isinstance(answer, FairleadError):
            raise answer
        return answer

    async def get(self, task_id: str) -> Task:
        return (await self.transport.get(TaskAnswer, _task(task_id))).to_value()

    async def explain(self, task_id: str) -> Explanation:
        return (await self.transport.get(ExplainAnswer, _task(task_id, "explain"))).to_value()

    async def outputs(self, task_id: str, after: int = 0) -> list[Output]:
        outputs: list[Output] = []
        following: int | None = after
        while following is not None:  # an answer may hold a part of them only
            answer = await self.transport.get(OutputsAnswer, _task(task_id, "outputs"), after=following)
            # its number is that of the message that brought it
            outputs += [one.to_value(event_seq=one.seq) for one in answer.outputs]
            following = answer.next_after
        return outputs

    async def cancel(self, task_id: str) -> str | None:
        """Cancels the task and returns the worker that runs it, if any. Repeating it changes nothing."""
        return (await self.transport.ask(CancelAnswer, "DELETE", _task(task_id), repeat=True)).worker_id

    async def list_tasks(self, **wanted: Unpack[TaskFilter]) -> TaskPage:
        page = await self.transport.get(TasksAnswer, path("api", "v1", "tasks"), **with_time_texts(wanted))
        return TaskPage([one.to_value() for one in page.tasks], page.next_cursor or "", page.warnings)

    async def history(self, task_id: str) -> TaskHistory:
        return (await self.transport.get(HistoryAnswer, _task(task_id, "history"))).to_value()

    async def replay(self, task_id: str, parameters: Mapping[str, Any] | None = None) -> list[str]:
        address = path("api", "v1", "dlq", check_task_id(task_id), "replay")
        body = None if parameters is None else ReplayBody(parameters=dict(parameters))
        return (await self.transport.post(ReplayAnswer, address, body)).replayed

    async def purge(self, task_id: str) -> None:
        await self.transport.ask(PurgeAnswer, "DELETE", path("api", "v1", "dlq", check_task_id(task_id)))

    async def task_types(self) -> dict[str, int | None]:
        pages = self.transport.pages(TaskTypesAnswer, path("api", "v1", "task-types"))
        types = [one async for page in pages for one in page.task_types]
        return {
            one.task_type: None if one.paused_at is None else read_time("paused_at", one.paused_at)
            for one in types
        }

    async def pause_type(self, task_type: str, paused: bool = True) -> None:
        check_name("task_type", task_type)
        address, body = path("api", "v1", "task-types", task_type), PauseBody(paused=paused)
        await self.transport.ask(TaskTypeAnswer, "PUT", address, body, repeat=True)

    async def forecast(
        self, limits: Sequence[str] = (), *, seconds: float = 600, follow: str | None = None
    ) -> Forecast:
        asked = {"limits": ",".join(limits), "seconds": seconds, "follow": follow}
        address = path("api", "v1", "forecast")
        return (await self.transport.get(ForecastAnswer, address, **asked)).to_value()

    async def stats(self) -> Stats:
        """A tenant's key counts the tenant's own tasks: it may not see the workers."""
        stats = await self.transport.get(StatsAnswer, path("api", "v1", "queue", "stats"))
        if stats.workers.active is None:
            return stats.to_value()
        pages = self.transport.pages(WorkersAnswer, path("api", "v1", "workers"))
        workers = [one.to_value() async for page in pages for one in page.workers]
        return stats.to_value(workers=latest_first(workers))

    async def report(
        self,
        worker: str,
        completed: Sequence[Completed] = (),
        failed: Sequence[Failed] = (),
        *,
        claim: int = 0,
        idle: bool = False,
        request: str = "",
        acknowledged: Iterable[int] | None = None,
    ) -> tuple[list[State | FairleadError], Claimed]:
        """Results, failures and the next claim, in one round trip unless they are very large.

        Over a gateway nobody is handed a task unasked: `acknowledged` stays empty.
        """
        reports: list[Completed | Failed] = [*completed, *failed]
        batch = batch_of(reports, result_body)
        poll = PollBody(available_capacity=claim, idle=idle, request_id=request or None)
        rows: list[Accepted] = []
        polled: PollAnswer | None = None
        bodies = list(in_bodies(batch))
        for i, some in enumerate(bodies):
            last = claim and i == len(bodies) - 1
            body = {"results": some} | ({"poll": poll} if last else {})
            answer = await self._of_worker(ResultAnswer, worker, "result", body, claim if last else 0)
            rows += answer.results
            polled = answer.polled
        if claim and not bodies:
            polled = await self._of_worker(PollAnswer, worker, "poll", poll, claim)
        claimed = polled.to_value() if polled else Claimed()
        return batch.answers(map(state_or_error, rows)), claimed

    async def fail(self, worker: str, *reports: Failed) -> list[State | FairleadError]:
        return (await self.report(worker, failed=reports))[0]

    async def release(self, worker: str, *grants: Grant) -> list[State | FairleadError]:
        if not grants:
            return []
        fences = {grant.id: grant.fence for grant in grants if grant.fence is not None}
        body = ReleaseBody(task_ids=[grant.id for grant in grants], fences=fences)
        answer = await self._of_worker(ReleaseAnswer, worker, "release", body)
        return [state_or_error(row) for row in answer.results]

    async def progress(self, worker: str, *reports: Progress) -> list[FairleadError | None]:
        batch = batch_of(reports, progress_body)
        rows: list[Accepted] = []
        for some in in_bodies(batch):
            rows += (await self._of_worker(SayAnswer, worker, "progress", {"reports": some})).results
        return batch.answers(map(none_or_error, rows))

    async def shortened(self, worker: str, *grants: Grant) -> list[FairleadError | None]:
        answers: list[FairleadError | None] = []
        for start in range(0, len(grants), MOST_ITEMS):
            body = {"fences": {grant.id: grant.fence for grant in grants[start : start + MOST_ITEMS]}}
            answer = await self._of_worker(ReleaseAnswer, worker, "shortened", body)
            answers += map(none_or_error, answer.results)
        return answers

    async def send_frame(self, task_id: str, frame: Any) -> int:
        return (await self.transport.post(FrameAnswer, _task(task_id, "frames"), frame_body(frame))).seq

    async def take_frames(self, worker: str, grant: Grant, after: int = 0) -> list[Frame]:
        body = FramesBody(task_id=grant.id, fence=grant.fence, after=after)
        answer = await self._of_worker(FramesAnswer, worker, "frames", body)
        return [one.to_value() for one in answer.frames]

    async def extend(self, worker: str, grant: Grant, ms: int) -> int:
        check_ms("ms", ms)
        body = ExtendBody(task_id=grant.id, seconds=ms / 1000, fence=grant.fence)
        return read_time("deadline", (await self._of_worker(ExtendAnswer, worker, "extend", body)).deadline)

    async def expire(self, worker: str) -> int:
        return (await self._of_worker(ExpireAnswer, worker, "expire", None)).expired

    async def _of_worker(self, kind: type[A], worker: str, act: str, body: Any, claim: int = 0) -> A:
        most = MOST_ANSWER + claim * (MOST_BYTES + OF_A_TASK)
        address = path("internal", "workers", worker, act)
        within = ANSWER_WITHIN + claim * SECONDS_PER_TASK
        return await self.transport.post(kind, address, body, within=within, most=most)


def _task(task_id: str, *parts: str) -> str:
    return path("api", "v1", "tasks", check_task_id(task_id), *parts)
