"""Traces of programs of others, without a receiver, and not at all."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead import Fairlead, tracing
from fairlead.errors import InvalidInput
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from fairlead.sync import Fairlead as BlockingFairlead
from fairlead.tracing.exporting import LoggedExporter
from fairlead.tracing.tracer import Tracer
from tests.logs import event_of, records
from tests.servers import Server, free_port
from tests.tracing.receiver import Receiver, receiving
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> trace.Tracer:
    """Of a program whose spans Fairlead joins."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "active", Tracer(provider.get_tracer("fairlead")))
    return provider.get_tracer("program")


async def test_a_submit_continues_the_span_of_the_program(
    live_store: Store, spans: trace.Tracer, exporter: InMemorySpanExporter
) -> None:
    with spans.start_as_current_span("request") as request:
        await live_store.submit(NewTask(task_type="draw"), NewTask(task_type="paint"))
        with pytest.raises(InvalidInput):
            await live_store.submit_one(NewTask(task_type="draw", limits={"nothing": 1}))
    one, other, refused, _ = exporter.get_finished_spans()
    for span, name in ((one, "submit draw"), (other, "submit paint"), (refused, "submit draw")):
        assert (span.name, span.parent) == (name, request.get_span_context())
    assert one.status.is_ok or one.status.is_unset
    assert not refused.status.is_ok
    assert refused.attributes is not None and refused.attributes["error.type"] == "unknown_limit"


async def test_what_is_not_a_task_is_refused_as_ever(
    live_store: Store, spans: trace.Tracer, exporter: InMemorySpanExporter
) -> None:
    odd: list[dict[str, Any]] = [
        {"task_type": "\ud800"},
        {"trace_id": 5},
        {"priority": "x"},
    ]
    for wrong in odd:
        with pytest.raises(InvalidInput):
            await live_store.submit_one(NewTask(**{"task_type": "draw"} | wrong))
    assert len(exporter.get_finished_spans()) == len(odd)
    assert encode_spans(exporter.get_finished_spans()).SerializeToString()


async def test_what_was_accepted_before_is_marked(
    live_store: Store, spans: trace.Tracer, exporter: InMemorySpanExporter
) -> None:
    for _ in range(2):
        await live_store.submit_one(NewTask(task_type="draw", idempotency_key="k"))
    last, _ = await live_store.crons.last("nightly")

    async def is_later() -> bool:
        return (await live_store.crons.last("nightly"))[1] > last

    await wait_until(is_later)
    for _ in range(2):
        await live_store.crons.tick("nightly", last, last + 1, NewTask(task_type="draw"))
    marks = [(span.attributes or {}).get("fairlead.repeated") for span in exporter.get_finished_spans()]
    assert marks == [None, True, None, True]


def test_a_blocking_submit_continues_the_span_of_its_thread(
    live_store: Store, server: Server, spans: trace.Tracer, exporter: InMemorySpanExporter
) -> None:
    with (
        BlockingFairlead(server.url, namespace=live_store.connection.keys.namespace) as fl,
        spans.start_as_current_span("request") as request,
    ):
        fl.submit("draw")
    submit, _ = exporter.get_finished_spans()
    assert submit.parent is not None
    assert (submit.name, submit.parent.span_id) == ("submit draw", request.get_span_context().span_id)


async def test_a_worker_of_the_program_runs_the_handler_in_a_span(
    live_store: Store, server: Server, spans: trace.Tracer, exporter: InMemorySpanExporter
) -> None:
    fl = Fairlead(server.url, namespace=live_store.connection.keys.namespace)

    @fl.task
    async def draw() -> None:
        spans.start_span("ink").end()

    async with fl, fl.worker():
        await (await draw.submit()).result(timeout=40)
        await wait_until(lambda: len(exporter.get_finished_spans()) == 5)
    found = {span.name: span for span in exporter.get_finished_spans()}
    for name, parent in (("run draw", "submit draw"), ("ink", "run draw"), ("wait draw", "submit draw")):
        span, above = found[name], found[parent].context
        assert span.parent and above
        assert (span.parent.trace_id, span.parent.span_id) == (above.trace_id, above.span_id)


async def test_without_a_receiver_the_work_is_done_and_one_line_says_so(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    port = free_port()
    env = Receiver(f"http://127.0.0.1:{port}").env | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    where = ("--engine", server.url, "--namespace", live_store.connection.keys.namespace)
    launcher = WorkerLauncher(tmp_path, lambda: where, env)
    async with launcher.workers("tests.apps.traced:fl") as workers:
        for _ in range(3):
            await outlined(live_store)
        await wait_until(lambda: "spans_not_sent" in workers.log_text())
        with receiving(port) as receiver:
            while "spans_sent_again" not in workers.log_text():
                await outlined(live_store)
            assert receiver.spans()
        assert await workers.end() == 0
    problems = [line for line in records(workers.log_text()) if " WARNING " in line or " ERROR " in line]
    assert {*map(event_of, problems)} == {"server_not_durable", "spans_not_sent"}


def test_one_line_says_that_spans_are_not_sent_and_one_that_they_are_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure, success = SpanExportResult.FAILURE, SpanExportResult.SUCCESS
    results = iter((success, failure, ValueError(), failure, success, success, failure))

    class Changing(InMemorySpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            result = next(results)
            if isinstance(result, ValueError):
                raise result
            return result

    exporter = LoggedExporter(Changing())
    with caplog.at_level("INFO", "fairlead.tracing"):
        assert [exporter.export(()) for _ in range(7)].count(success) == 3
    said = [record.getMessage().partition(" ")[0] for record in caplog.records]
    assert said == ["spans_not_sent", "spans_sent_again", "spans_not_sent"]


async def outlined(store: Store) -> None:
    task = await store.submit_one(NewTask(task_type="outline", parameters={"prompt": "x"}))
    await wait_until(lambda: has_ended(store, task.task_id))


async def has_ended(store: Store, task_id: str) -> bool:
    return (await store.get(task_id)).completed_at is not None


NO_PACKAGE = "import sys; sys.modules['opentelemetry'] = None\n"


def run_without_package(program: str) -> str:
    command = [sys.executable, "-c", NO_PACKAGE + program]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_while_they_are_off_nothing_of_them_is_imported() -> None:
    program = (
        "import fairlead.app.worker_main, fairlead.api.server, fairlead.cli.server, fairlead.client.client\n"
        "print([name for name in sys.modules if name.startswith('fairlead.tracing.')])"
    )
    assert run_without_package(program) == "[]\n"


def test_without_the_package_the_error_says_what_to_install() -> None:
    program = (
        "from fairlead import tracing\n"
        "from fairlead.errors import InvalidSettings\n"
        "from fairlead.settings import TracingSettings\n"
        "for begin in (lambda it: tracing.export(it, 'fairlead-server'), tracing.join):\n"
        "    try: begin(TracingSettings(enabled=True))\n"
        "    except InvalidSettings as problem: print(problem)"
    )
    assert run_without_package(program).count("pip install 'fairlead[otel]'") == 2
