"""What happens to a task is one trace, through real processes to a real receiver."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import format_span_id, format_trace_id

from fairlead import Fairlead, tracing
from fairlead.store.store import Store
from fairlead.times import read_time
from fairlead.tracing.tracer import Tracer
from tests.api.requests import good
from tests.api.serving import Gateway, serving
from tests.pipeline.servers import GOOD, RawService, raw_service, says
from tests.servers import Server
from tests.tracing.receiver import Receiver, Span, receiving
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

CANARY = "a secret city"
CONFIG = """
[retry]
base_seconds = 0.1
max_seconds = 0.1
[services.painter]
url = "{url}"
"""
OF_A_RUN = ("wait", "claim", "run")
OF_THE_JOB = Counter(
    [
        "submit album",
        *(f"{what} {step}" for step in ("outline", "service:painter", "bind", "bind") for what in OF_A_RUN),
        *("ink", "thread", "thread"),
    ]
)


@dataclass
class Site:
    """A gateway that calls a service, a worker on its store, and one that speaks to the gateway."""

    api: httpx.AsyncClient
    receiver: Receiver
    service: RawService
    folder: Path

    def transitions(self) -> list[dict[str, str]]:
        """Of the logs of all processes."""
        lines = [line for log in self.folder.glob("*.log") for line in log.read_text().splitlines()]
        return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in lines if " INFO transition " in line]

    async def traced(self, trace_id: str, count: int) -> list[Span]:
        """The spans of a trace, once this number is there."""

        def found() -> list[Span]:
            return [span for span in self.receiver.spans() if span.trace_id == trace_id]

        await wait_until(lambda: len(found()) >= count, because=f"{count} spans: {found()}")
        return found()

    async def ended(self, path: str) -> dict[str, Any]:
        async def has_ended() -> bool:
            return good(await self.api.get(path))["status"] in ("completed", "COMPLETED")

        await wait_until(has_ended)
        return good(await self.api.get(path))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
async def site(live_store: Store, server: Server, tmp_path: Path, receiver: Receiver) -> AsyncIterator[Site]:
    namespace, history = live_store.connection.keys.namespace, f"sqlite:///{tmp_path}/history.sqlite3"
    env = receiver.env | {"FAIRLEAD_HISTORY__ENABLED": "true", "DATABASE_URL": history}
    env["FAIRLEAD_LOG__TRANSITIONS"] = "true"
    async with raw_service(says(GOOD)) as service, AsyncExitStack() as stack:
        config = tmp_path / "fairlead.toml"
        config.write_text(CONFIG.format(url=service.url))
        gateway = stack.enter_context(
            serving(server.url, namespace, tmp_path, "--config", str(config), "--govern", env=env)
        )
        await run_workers(stack, gateway, receiver, tmp_path)
        api = await stack.enter_async_context(httpx.AsyncClient(base_url=gateway.url, timeout=40))
        yield Site(api, receiver, service, tmp_path)


async def run_workers(stack: AsyncExitStack, gateway: Gateway, receiver: Receiver, folder: Path) -> None:
    direct = ("--engine", gateway.engine, "--namespace", gateway.namespace)
    for app, where in (("fl", direct), ("remote", ("--url", gateway.url))):
        launcher = WorkerLauncher(folder, lambda where=where: where, receiver.env)  # type: ignore[misc]
        await stack.enter_async_context(launcher.workers(f"tests.apps.traced:{app}"))


async def test_a_job_with_a_retry_is_one_tree(site: Site) -> None:
    wanted = {"feature_name": "album", "input_data": {"prompt": CANARY}}
    job_id = good(await site.api.post("/api/v1/jobs", json=wanted), 201)["job_id"]
    await site.ended(f"/api/v1/jobs/{job_id}")
    await wait_until(lambda: site.receiver.named("submit album"))
    (root,) = site.receiver.named("submit album")
    spans = await site.traced(root.trace_id, OF_THE_JOB.total())
    assert Counter(span.name for span in spans) == OF_THE_JOB
    check_tree(root, spans)
    check_retry(spans)
    (call,) = site.service.requests
    assert call.headers["traceparent"] == one(spans, "run service:painter").traceparent
    assert {span.service for span in spans} == {"fairlead-server", "fairlead-worker"}
    assert not [body for body in site.receiver.bodies if CANARY.encode() in body]
    for name in ("outline", "bind"):
        await check_times(site, name, spans)
    check_logs(site, job_id, root.trace_id)


def one(spans: list[Span], name: str) -> Span:
    (found,) = (span for span in spans if span.name == name)
    return found


def check_tree(root: Span, spans: list[Span]) -> None:
    """One root, which is the parent of all that Fairlead does; what a handler does belongs to its run."""
    assert [span for span in spans if not span.parent_id] == [root]
    known = {span.span_id: span for span in spans}
    assert len(known) == len(spans)
    for span in spans:
        if span.name.partition(" ")[0] in OF_A_RUN:
            assert span.parent_id == root.span_id
        elif span != root:
            assert known[span.parent_id].name == {"ink": "run outline", "thread": "run bind"}[span.name]


def check_retry(spans: list[Span]) -> None:
    first, second = sorted((span for span in spans if span.name == "run bind"), key=lambda span: span.start)
    assert (first.failed, first.attributes["error.type"], first.links) == (True, "retriable_error", [])
    assert (second.failed, second.links) == (False, [(first.trace_id, first.span_id)])
    assert [run.attributes["fairlead.attempt"] for run in (first, second)] == [1, 2]
    assert not [span for span in spans if span.links and span != second]


async def check_times(site: Site, task_type: str, spans: list[Span]) -> None:
    """As the history of the task has them. The clocks are one here."""
    task_id = next(span for span in spans if span.name == f"run {task_type}").attributes["fairlead.task_id"]
    path = f"/api/v1/tasks/{task_id}/history"

    async def is_recorded() -> bool:
        attempts = good(await site.api.get(path))["attempts"]
        return "complete" in [attempt["ended_by"] for attempt in attempts]

    await wait_until(is_recorded)
    history = good(await site.api.get(path))
    submitted, *later = history["events"]
    queued = [read_time("at", submitted["at"])]
    queued += [
        read_time("at", event["at"]) + event["data"]["delay"] for event in later if event["to"] == "delayed"
    ]
    parts = [
        sorted((span for span in spans if span.name == f"{what} {task_type}"), key=lambda span: span.start)
        for what in OF_A_RUN
    ]
    for since, attempt, wait, claim, run in zip(queued, history["attempts"], *parts, strict=True):
        started, ended = (1000 * read_time(name, attempt[name]) for name in ("started_at", "ended_at"))
        assert (wait.start, wait.end, claim.start) == (1000 * since, started, started)
        assert claim.end == run.start <= run.end < ended + 1000


def check_logs(site: Site, job_id: str, trace_id: str) -> None:
    """Each change of each step is one line of one process, with the trace."""
    found = [line for line in site.transitions() if line.get("job") == job_id]
    once, again = ["submit", "claim", "complete"], ["submit", "claim", "fail", "promote", "claim", "complete"]
    for step, acts in enumerate((once, once, again)):
        lines = [line for line in found if line["step"] == str(step)]
        assert sorted(line["act"] for line in lines) == sorted(acts)
        assert {line["trace"] for line in lines} == {trace_id}


async def test_traces_that_others_begin_are_continued(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await continue_request(site)
    await begin_named_trace(site)
    await continue_program(site, monkeypatch)
    await leave_unsampled(site)


async def run_sketch(site: Site, flags: str | None = None, trace: str = "", **given: str) -> dict[str, Any]:
    headers = {"traceparent": f"00-{trace}-{'cd' * 8}-{flags}"} if flags else {}
    answer = await site.api.post("/api/v1/tasks", json={"task_type": "sketch"} | given, headers=headers)
    return await site.ended(f"/api/v1/tasks/{good(answer, 201)['task_id']}")


async def continue_request(site: Site) -> None:
    task = await run_sketch(site, "01", "ab" * 16)
    spans = await site.traced("ab" * 16, 5)
    submit, run = one(spans, "submit sketch"), one(spans, "run sketch")
    assert (submit.parent_id, run.parent_id) == ("cd" * 8, submit.span_id)
    assert one(spans, "pencil").parent_id == run.span_id  # in a thread
    assert task["trace_id"] == task["result"] == "ab" * 16


async def begin_named_trace(site: Site) -> None:
    await run_sketch(site, trace_id="12" * 16)
    spans = await site.traced("12" * 16, 5)
    assert [span.name for span in spans if not span.parent_id] == ["submit sketch"]


async def continue_program(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = TracerProvider(shutdown_on_exit=False).get_tracer("program")
    monkeypatch.setattr(tracing, "active", Tracer(spans))
    with spans.start_as_current_span("request") as request:
        async with Fairlead(str(site.api.base_url)) as fl:
            await (await fl.submit("sketch")).result(timeout=40)
    own = request.get_span_context()
    submit = one(await site.traced(format_trace_id(own.trace_id), 5), "submit sketch")
    assert submit.parent_id == format_span_id(own.span_id)


async def leave_unsampled(site: Site) -> None:
    await run_sketch(site, "00", "ef" * 16)
    await run_sketch(site, "01", "fe" * 16)
    await site.traced("fe" * 16, 5)  # by then those of the one before would be there
    assert not [span for span in site.receiver.spans() if span.trace_id == "ef" * 16]
