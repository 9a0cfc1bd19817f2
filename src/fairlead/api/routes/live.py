"""Live updates: tasks that are watched, submitted and watched at once, or read as a stream of events."""

import asyncio

from starlette.types import ASGIApp

from fairlead import errors
from fairlead.api.live.connections import NORMAL
from fairlead.api.live.session import Session
from fairlead.api.live.socket import Socket
from fairlead.api.live.stream import EventStream, nothing_new
from fairlead.api.problems import InvalidBody, TooManyConnections
from fairlead.api.request import Request
from fairlead.api.table import Route, SocketRoute
from fairlead.live.feed import Feed, TaskFeed
from fairlead.live.job_feed import JobFeed
from fairlead.model.states import TERMINAL
from fairlead.shapes.base import Json
from fairlead.shapes.live import EventAnswer, EventsQuery, TicketAnswer, WatchQuery
from fairlead.store.access.socket_tickets import SECONDS, Holder


async def watch(request: Request, socket: Socket) -> None:
    """Hear of one task or job, from its state now until it has ended."""
    feed = await _feed_of(request, request.path["id"])
    await socket.accept()
    telling = asyncio.create_task(_tell_all(socket, feed, request.query.after))
    try:
        while True:  # whatever it says: here the server talks
            await socket.hear()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _feed_of(request: Request, some_id: str) -> Feed:
    """What has this id, if the caller may see it; UnknownTask otherwise."""
    store = request.gateway.store
    try:
        return TaskFeed(store, (await request.gateway.own_task(request.caller, some_id)).task_id)
    except errors.UnknownTask as unknown:
        try:
            return JobFeed(store, await request.gateway.own_job(request.caller, some_id))
        except errors.UnknownJob:
            raise unknown from None


async def _tell_all(socket: Socket, feed: Feed, after: int | None) -> None:
    if await socket.tell(feed, after):
        socket.connection.end(NORMAL)


async def submit_and_watch(request: Request, socket: Socket) -> None:
    """Submit tasks and hear of them."""
    await socket.accept()
    await Session(request, socket).run()


async def events(request: Request) -> ASGIApp:
    """What happened to a task and is kept, how it is, and then what happens, as Server-Sent Events."""
    task = await request.gateway.own_task(request.caller, request.path["task_id"])
    after = last_seen(request)
    if after == task.seq and task.status in TERMINAL:
        return nothing_new
    return EventStream(request, TaskFeed(request.gateway.store, task.task_id), after)


def last_seen(request: Request) -> int:
    """Of the address, or of what an event source says when it comes back."""
    query: EventsQuery = request.query
    last = request.headers.get("last-event-id")
    if query.after is not None or last is None:
        return query.after or 0
    if not (last.isascii() and last.isdigit() and len(last) < 10):
        raise InvalidBody([("last-event-id", "is not the id of an event: send the last that came, or none")])
    return int(last)


async def make_ticket(request: Request) -> Json:
    """A ticket that opens one WebSocket instead of the key, once and soon."""
    who = request.caller
    scopes = tuple(sorted(who.scopes))
    holder = Holder(who.key_id, who.name, scopes, who.tenant, who.has_rate, who.max_priority)
    return {"ticket": await request.gateway.store.tickets.make(holder), "expires_in": SECONDS}


ROUTES = (
    Route(
        method="GET",
        path="/api/v1/tasks/{task_id}/events",
        scope="read",
        handler=events,
        query=EventsQuery,
        answer=EventAnswer,
        streams=True,
        media="text/event-stream",
        refusals=(errors.UnknownTask, TooManyConnections),
    ),
    Route(
        method="POST",
        path="/api/v1/tickets",
        scope="read",
        handler=make_ticket,
        answer=TicketAnswer,
        status=201,
    ),
)

SOCKETS = (
    SocketRoute(path="/ws/tasks", scopes=("submit", "read"), handler=submit_and_watch),
    SocketRoute(path="/ws/{id}", scopes=("read",), handler=watch, query=WatchQuery),
)
