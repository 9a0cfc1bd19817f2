"""Live updates over WebSockets and Server-Sent Events."""

import asyncio

from starlette.types import ASGIApp

from fairlead import errors
from fairlead.api.live.interactive import interact
from fairlead.api.live.session import Session
from fairlead.api.live.socket import Socket
from fairlead.api.live.stream import EventStream, events_of, nothing_new
from fairlead.api.problems import InvalidBody, TooManyConnections
from fairlead.api.request import Request
from fairlead.api.table import Routes, SocketRoute
from fairlead.background import cancel_all
from fairlead.live.feed import Feed, JobFeed, TaskFeed
from fairlead.model.job import ENDED
from fairlead.model.states import TERMINAL
from fairlead.shapes.live import EventAnswer, EventsQuery, TicketAnswer, TicketQuery, WatchQuery
from fairlead.shapes.overview import OverviewAnswer, OverviewQuery
from fairlead.store.access.socket_tickets import TICKET_SECONDS

routes = Routes("/api/v1", scope="read")


async def watch(request: Request, socket: Socket, query: WatchQuery) -> None:
    """Watch one task or job, from its current state until it has ended."""
    feed = await _feed_of(request, request.path["id"])
    await socket.accept()
    sending = asyncio.create_task(socket.end_with(feed.messages(query.after)))
    try:
        while True:  # what the client sends is ignored
            await socket.receive()
    finally:
        await cancel_all(sending)


async def _feed_of(request: Request, some_id: str) -> Feed:
    """The feed of the task or job with this id, if the caller may see it; UnknownTask otherwise."""
    try:
        return TaskFeed(request.store, (await request.own_task(some_id)).task_id)
    except errors.UnknownTask as unknown:
        try:
            return JobFeed(request.store, await request.own_job(some_id))
        except errors.UnknownJob:
            raise unknown from None


async def submit_and_watch(request: Request, socket: Socket, query: TicketQuery) -> None:
    """Submit tasks and watch them."""
    await socket.accept()
    await Session(request, socket).run()


@routes.get(
    "/tasks/{task_id}/events",
    streams=True,
    media="text/event-stream",
    refusals=(errors.UnknownTask, TooManyConnections),
    answer=EventAnswer,
)
async def events(request: Request, query: EventsQuery) -> ASGIApp:
    """Stream a task as Server-Sent Events: what is kept of its past, its state, then each change."""
    task = await request.own_task(request.path["task_id"])
    feed = TaskFeed(request.store, task.task_id)
    return _stream(request, query, feed, task.seq if task.status in TERMINAL else None)


@routes.get(
    "/jobs/{job_id}/events",
    operation_id="jobs_events",
    streams=True,
    media="text/event-stream",
    refusals=(errors.UnknownJob, TooManyConnections),
    answer=str,
)
async def job_events(request: Request, query: EventsQuery) -> ASGIApp:
    """Stream a job as Server-Sent Events: what is kept of its past, its state, then each change."""
    job = await request.own_job(request.path["job_id"])
    return _stream(request, query, JobFeed(request.store, job), job.seq if job.status in ENDED else None)


@routes.get("/overview")
async def overview(request: Request) -> OverviewAnswer:
    """Get the namespace at a glance: what waits, runs and ended lately, and counts of the rest."""
    return OverviewAnswer.from_value(await request.store.overviews.get(request.caller.tenant))


@routes.get(
    "/overview/events",
    streams=True,
    media="text/event-stream",
    refusals=(TooManyConnections,),
    answer=str,
)
async def overview_events(request: Request, query: OverviewQuery) -> ASGIApp:
    """Stream the namespace at a glance as Server-Sent Events: when it changes, at most once a second."""
    messages = request.gateway.overviews.messages(request.caller.tenant, query.messages)
    return EventStream(request, messages)


def _stream(request: Request, query: EventsQuery, feed: Feed, last: int | None) -> ASGIApp:
    """`last` is the number of the last message, once it is known."""
    after = last_seen(request, query)
    return nothing_new if after == last else EventStream(request, events_of(feed.messages(after)))


def last_seen(request: Request, query: EventsQuery) -> int:
    """The `after` of the query, or the Last-Event-ID that an event source sends when it reconnects."""
    last = request.headers.get("last-event-id")
    if query.after is not None or last is None:
        return query.after or 0
    if not (last.isascii() and last.isdigit() and len(last) < 10):
        raise InvalidBody("last-event-id", "not the id of an event: send the last one received, or none")
    return int(last)


@routes.post("/tickets", status=201)
async def make_ticket(request: Request) -> TicketAnswer:
    """Create a ticket that opens one WebSocket in place of the key, once, within 30 seconds."""
    return TicketAnswer(ticket=await request.store.tickets.make(request.caller), expires_in=TICKET_SECONDS)


SOCKETS = (
    SocketRoute(path="/ws/tasks", scopes=("submit", "read"), handler=submit_and_watch),
    SocketRoute(
        path="/ws/interactive/{id}",
        scopes=("submit", "read", "cancel"),
        handler=interact,
        query=WatchQuery,
    ),
    SocketRoute(path="/ws/{id}", scopes=("read",), handler=watch, query=WatchQuery),
)
