"""The spans of a task: its submit, and for each run its wait, its claim and the run itself.

The submit is the parent of all others, also for the steps of a job: its context is kept with the task as
`traceparent`. The process that runs the task adds the rest; the wait and the claim when they are over. Of
what clients and handlers choose, spans hold only names, ids and codes of errors.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from hashlib import blake2b
from typing import TypeVar

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairlead import __version__
from fairlead.clock import now_ms
from fairlead.errors import FairleadError
from fairlead.log.tracebacks import readable
from fairlead.model.job import NewJob, SubmittedJob
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.task import NewTask, Submitted, Task

TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
MOST_LETTERS = 200  # of a name or a code
NS = 1_000_000  # of a ms
W3C = TraceContextTextMapPropagator()

N = TypeVar("N", NewTask, NewJob)
S = TypeVar("S", bound=Submitted | SubmittedJob | None)
R = TypeVar("R", bound=Completed | Failed | Grant)
ChooseIds = Callable[[int, int], AbstractContextManager[None]]


class Tracer:
    """`choose_ids`: of the trace and of the span that begins in the block; 0: a random one."""

    def __init__(
        self,
        tracer: trace.Tracer,
        close: Callable[[], None] = lambda: None,
        choose_ids: ChooseIds | None = None,
    ) -> None:
        self._tracer = tracer
        self.close = close
        self._choose_ids = choose_ids

    async def submit(
        self,
        send: Callable[..., Awaitable[list[Submitted | FairleadError]]],
        *wanted: NewTask,
    ) -> list[Submitted | FairleadError]:
        begun = [self._begin_submit(one) for one in wanted]
        answers: list[Submitted | FairleadError] = []
        try:
            answers = await send(*(one for one, _ in begun))
        except FairleadError as problem:
            answers = [problem] * len(begun)
            raise
        finally:
            for (_, span), answer in zip(begun, answers, strict=False):
                _note_answer(span, answer)
            for _, span in begun:
                span.end()
        return answers

    async def submit_one(self, send: Callable[..., Awaitable[S]], wanted: N, *others: object) -> S:
        traced, span = self._begin_submit(wanted)
        try:
            answer = await send(traced, *others)
            _note_answer(span, answer)
        except FairleadError as problem:
            _note_answer(span, problem)
            raise
        finally:
            span.end()
        return answer

    def current(self) -> str | None:
        return _traceparent_of(None)

    def continuing(self, traceparent: str) -> AbstractContextManager[object]:
        return trace.use_span(trace.get_current_span(_context_of(traceparent)))

    def _begin_submit(self, wanted: N) -> tuple[N, Span]:
        """Continues the trace of the caller: what it has sent, or its current span. Nothing is checked."""
        if isinstance(wanted, NewTask):
            name, facts = wanted.task_type, {"task_id": wanted.task_id, "task_type": wanted.task_type}
        else:
            name, facts = wanted.feature_name, {"job_id": wanted.job_id, "pipeline": wanted.feature_name}
        parent, own = _context_of(wanted.traceparent), 0
        if parent is None and TRACE_ID.fullmatch(str(wanted.trace_id)):
            own, parent = int(str(wanted.trace_id), 16), Context()
        with self._chosen(trace_id=own):
            span = self._tracer.start_span(
                _text(f"submit {name}"),
                parent,
                SpanKind.PRODUCER,
                _attributes(facts | {"priority": wanted.priority}),
            )
        traceparent = _traceparent_of(trace.set_span_in_context(span))
        trace_id = wanted.trace_id or trace.format_trace_id(span.get_span_context().trace_id)
        if isinstance(wanted, NewTask):
            return msgspec.structs.replace(wanted, traceparent=traceparent, trace_id=trace_id), span
        return replace(wanted, traceparent=traceparent, trace_id=trace_id), span

    async def run(self, task: Task, carry_out: Callable[[], Awaitable[R]], worker: str) -> R:
        """The report of the run, in which its span is the current one."""
        with self._running(task, worker) as span:
            report = await carry_out()
            if isinstance(report, Failed):
                _note_failure(span, report.code)
            elif isinstance(report, Grant):  # or stopped because it was cancelled
                span.set_attribute("fairlead.given_back", True)
            return report

    @contextmanager
    def _running(self, task: Task, worker: str) -> Iterator[Span]:
        facts = {
            **{"task_id": task.task_id, "task_type": task.task_type, "priority": task.priority.word},
            **{"job_id": task.job_id, "step": task.step, "attempt": task.attempt, "fence": task.fence},
            "worker_id": worker,
        }
        attributes, parent, now = _attributes(facts), _context_of(task.traceparent), now_ms()
        if parent and task.started_at:
            since = max(task.queued_at or 0, task.created_at)  # of a later step the one is that of its job
            self._add("wait", task, parent, attributes, since, task.started_at)
            self._add("claim", task, parent, attributes, task.started_at, now)
        with self._chosen(span_id=_run_id(task.task_id, task.fence)):
            span = self._tracer.start_span(
                f"run {task.task_type}",
                parent or Context(),
                SpanKind.CONSUMER,
                attributes,
                self._links(task, parent),
                start_time=now * NS,
            )
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield span

    def _add(
        self,
        what: str,
        task: Task,
        parent: Context,
        attributes: Mapping[str, str | int],
        start: int,
        end: int,
    ) -> None:
        """A span of what is over. Times are ms; the store's clock may be ahead of this machine's."""
        name = f"{what} {task.task_type}"
        span = self._tracer.start_span(name, parent, attributes=attributes, start_time=start * NS)
        span.end(max(start, end) * NS)

    def _links(self, task: Task, parent: Context | None) -> list[Link]:
        """To the run before, if that was reported: otherwise its span ended with its process."""
        if self._choose_ids is None or task.reported_fence is None or parent is None:
            return []
        context = trace.get_current_span(parent).get_span_context()
        before = _run_id(task.task_id, task.reported_fence)
        return [Link(SpanContext(context.trace_id, before, is_remote=True, trace_flags=context.trace_flags))]

    def _chosen(self, *, trace_id: int = 0, span_id: int = 0) -> AbstractContextManager[None]:
        return self._choose_ids(trace_id, span_id) if self._choose_ids else nullcontext()


def joining_tracer() -> Tracer:
    return Tracer(trace.get_tracer("fairlead", __version__))


def _traceparent_of(context: Context | None) -> str | None:
    carrier: dict[str, str] = {}
    W3C.inject(carrier, context)
    return carrier.get("traceparent")


def _context_of(traceparent: str | None) -> Context | None:
    return W3C.extract({"traceparent": str(traceparent)}, Context()) if traceparent else None


def _run_id(task_id: str, fence: int) -> int:
    """Known to whoever knows the run, so that the next run can link to it."""
    return int.from_bytes(blake2b(f"{task_id}:{fence}".encode(), digest_size=8).digest()) or 1


def _attributes(facts: Mapping[str, str | int | None]) -> dict[str, str | int]:
    known = {f"fairlead.{name}": fact for name, fact in facts.items() if fact is not None}
    return {name: _text(fact) if isinstance(fact, str) else fact for name, fact in known.items()}


def _text(words: str) -> str:
    """One that could not be encoded would cost all spans that are sent with it."""
    return readable(words)[:MOST_LETTERS]


def _note_answer(span: Span, answer: Submitted | SubmittedJob | FairleadError | None) -> None:
    if isinstance(answer, FairleadError):
        _note_failure(span, str(answer.code))
    elif answer is None or answer.repeated:  # it was accepted before, by another call
        span.set_attribute("fairlead.repeated", True)


def _note_failure(span: Span, code: str) -> None:
    span.set_attribute("error.type", _text(code))
    span.set_status(Status(StatusCode.ERROR))
