"""Where the spans of Fairlead's own processes go: to an OTLP receiver over HTTP, beside the work."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from fairlead import __version__
from fairlead.log.events import EventLog
from fairlead.tracing.tracer import Tracer

CLOSE_SECONDS = 2.0  # for the last spans
UNNAMED = "unknown_service"  # how the name begins that OpenTelemetry gives to a service without one

#: They write several lines for each batch that cannot be sent; LoggedExporter writes one for all.
NOISY = ("opentelemetry.exporter", "opentelemetry.sdk")

log = EventLog("fairlead.tracing")


class ChosenIds(RandomIdGenerator):
    """Random, except for those of a span that begins in a block of `choose`."""

    def __init__(self) -> None:
        self._chosen: ContextVar[tuple[int, int]] = ContextVar("chosen", default=(0, 0))

    @contextmanager
    def choose(self, trace_id: int, span_id: int) -> Iterator[None]:
        token = self._chosen.set((trace_id, span_id))
        yield
        self._chosen.reset(token)

    def generate_trace_id(self) -> int:
        return self._chosen.get()[0] or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self._chosen.get()[1] or super().generate_span_id()

    def is_trace_id_random(self) -> bool:
        return False  # a client may have chosen it


class LoggedExporter(SpanExporter):
    """Says once that spans cannot be sent, and once that they are sent again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:  # of its HTTP library, say: what it would log is silenced
            result = SpanExportResult.FAILURE
        fails = result is not SpanExportResult.SUCCESS
        if fails and not self.fails:
            problem = "the receiver of OTEL_EXPORTER_OTLP_ENDPOINT does not take them"
            log.warning("spans_not_sent", problem=problem)
        elif self.fails and not fails:
            log.info("spans_sent_again")
        self.fails = fails
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def exporting_tracer(service: str) -> Tracer:
    """Handlers use its provider too, unless they have set one of their own."""
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    ids, exporter = ChosenIds(), LoggedExporter(OTLPSpanExporter())
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith(UNNAMED):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)

    def close() -> None:
        """Not longer than for a moment, and not at all for a receiver that is away."""
        closing = Thread(target=provider.shutdown, name="fairlead-tracing-close", daemon=True)
        closing.start()
        if not exporter.fails:
            closing.join(CLOSE_SECONDS)

    return Tracer(provider.get_tracer("fairlead", __version__), close, ids.choose)
