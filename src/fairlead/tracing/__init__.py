"""Traces of tasks, for OpenTelemetry. While they are off, nothing of it is imported, and `active` is None."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fairlead.errors import InvalidSettings
from fairlead.settings.processes import TracingSettings

if TYPE_CHECKING:
    from fairlead.tracing.tracer import Tracer

ENABLED = "FAIRLEAD_TRACING__ENABLED"
SERVER, WORKER = "fairlead-server", "fairlead-worker"  # services, unless OTEL_SERVICE_NAME names one
MISSING = "tracing.enabled = true needs a package: pip install 'fairlead[otel]'"

#: Read it as `tracing.active`: it is set when the process has read its settings.
active: "Tracer | None" = None


def export(settings: TracingSettings, service: str) -> None:
    """In a process of Fairlead's own: sends its spans to where the OTEL_* variables say.

    Child processes inherit the setting by their environment.
    """
    global active
    os.environ[ENABLED] = "true" if settings.enabled else "false"
    if not settings.enabled:
        return
    try:
        from fairlead.tracing.exporting import exporting_tracer
    except ImportError:
        raise InvalidSettings(MISSING) from None
    active = exporting_tracer(service)


def join(settings: TracingSettings) -> None:
    """In a program of others: its own tracer provider gets the spans."""
    global active
    if active or not settings.enabled:
        return
    try:
        from fairlead.tracing.tracer import joining_tracer
    except ImportError:
        raise InvalidSettings(MISSING) from None
    active = joining_tracer()


def inherited_settings(env: Mapping[str, str] = os.environ) -> TracingSettings:
    """The setting of the process that started this one."""
    return TracingSettings(enabled=env.get(ENABLED) == "true")


F = TypeVar("F", bound=Callable[..., Any])


def of_submits(send: F) -> F:
    """Each call of the method, with any number of tasks, is traced while `active`."""

    @wraps(send)
    def submit(self: object, *wanted: Any) -> Any:
        return active.submit(partial(send, self), *wanted) if active else send(self, *wanted)

    return cast(F, submit)


def of_submit(send: F) -> F:
    """The same with one task or job, and what else the method takes."""

    @wraps(send)
    def submit(self: object, wanted: Any, *others: Any) -> Any:
        return (
            active.submit_one(partial(send, self), wanted, *others) if active else send(self, wanted, *others)
        )

    return cast(F, submit)


def current() -> str | None:
    """The W3C context of the span in which this runs."""
    return active.current() if active else None


def continuing(traceparent: str | None) -> AbstractContextManager[object]:
    """In the block that span, which belongs to another process, is the current one."""
    return active.continuing(traceparent) if active and traceparent else nullcontext()


def close() -> None:
    """Sends what is left, for a moment at most."""
    if active:
        active.close()
