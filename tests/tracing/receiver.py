"""A receiver of OpenTelemetry's protocol over HTTP, which keeps the spans that it is sent."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """Ids as hexadecimal numbers, times in microseconds."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    failed: bool

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


@dataclass
class Receiver:
    url: str
    bodies: list[bytes] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """Of processes that send their spans here, at once."""
        return {
            "FAIRLEAD_TRACING__ENABLED": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

    def spans(self) -> list[Span]:
        return [span for body in self.bodies for span in spans_in(body)]

    def named(self, name: str) -> list[Span]:
        return sorted((span for span in self.spans() if span.name == name), key=lambda span: span.start)


def spans_in(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            yield Span(
                service=service,
                name=span.name,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent_id=span.parent_span_id.hex(),
                start=span.start_time_unix_nano // 1000,
                end=span.end_time_unix_nano // 1000,
                attributes=_values(span.attributes),
                links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                failed=span.status.code == span.status.STATUS_CODE_ERROR,
            )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextlib.contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.bodies.append(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
