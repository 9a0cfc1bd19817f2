"""Handlers with spans of their own, in two apps: one works on the store, the other through a gateway."""

from opentelemetry import trace

from fairlead import Context, Fairlead, RetriableError

fl, remote = Fairlead(), Fairlead()
fl.pipeline("album", ["outline", "painter", "bind"])
spans = trace.get_tracer("handlers")


@fl.task
async def outline(prompt: str) -> dict[str, str]:
    with spans.start_as_current_span("ink"):
        return {"drawn": prompt}


@fl.task
def sketch(ctx: Context) -> str | None:
    with spans.start_as_current_span("pencil"):
        return ctx.trace_id


@remote.task(run_in="process")
def bind(ctx: Context, prompt: str) -> str:
    with spans.start_as_current_span("thread", record_exception=False, set_status_on_exception=False):
        if ctx.attempt == 1:
            raise RetriableError(f"the {prompt} tore")
        return prompt
