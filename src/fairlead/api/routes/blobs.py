"""Blobs: files of tasks, uploaded and downloaded piece by piece."""

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead import errors
from fairlead.api.endpoint import SECURITY, Headers
from fairlead.api.problems import BodyTooSlow, InvalidBody, Overloaded
from fairlead.api.request import Request, declared_size
from fairlead.api.table import Routes
from fairlead.blobs.blobs import Blobs
from fairlead.blobs.shelf import Copy
from fairlead.model.blob import digest_of
from fairlead.model.task import Task
from fairlead.shapes.blob import BlobAnswer, BlobQuery, PutBlobQuery

WAIT_SECONDS = 2.0  # for other uploads to end
BYTES = "application/octet-stream"
SHA_256 = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]{44}):")  # in a Content-Digest (RFC 9530)
NO_PLACE = (errors.BlobStoreUnavailable, errors.UnknownTask)

routes = Routes("/api/v1/blobs", task_scope="worker")


@routes.put(
    scope="submit",
    status=201,
    body_media=BYTES,
    refusals=(
        *NO_PLACE,
        *(errors.InvalidInput, errors.BlobTooLarge, errors.BlobStoreFull, Overloaded, BodyTooSlow),
    ),
)
async def put(request: Request, query: PutBlobQuery) -> BlobAnswer:
    """Upload a file, to be named by its SHA-256 in the parameters of tasks."""
    task, blobs = await _task_of(request, query), request.store.blobs
    digest = _expected_digest(request, query)
    async with _turn(request.gateway.uploads):
        stored = await blobs.receive(
            request.pieces(),
            tenant=_tenant(request, task),
            size=declared_size(request.headers),
            digest=digest,
        )
    if task:
        await blobs.keep_for(task, stored.blob)
    if not stored.is_new:
        request.status = 200
    return BlobAnswer.from_value(stored)


@routes.get(
    "/{blob}", scope="read", streams=True, media=BYTES, answer=bytes, refusals=(*NO_PLACE, errors.UnknownBlob)
)
async def get(request: Request, query: BlobQuery) -> ASGIApp:
    """Download a file; HEAD shows whether it is there, and how large it is."""
    task, blobs = await _task_of(request, query), request.store.blobs
    digest = digest_of(request.path["blob"])
    return Content(blobs, await blobs.find(_tenant(request, task), digest), digest)


class Content:
    def __init__(self, blobs: Blobs, copy: Copy, digest: str) -> None:
        self._blobs = blobs
        self._copy = copy
        self._digest = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = [
            (b"content-type", BYTES.encode()),
            (b"content-length", b"%d" % self._copy.size),
            (b"content-disposition", b"attachment"),
            (b"etag", b'"sha256:%b"' % self._digest.encode()),
            *SECURITY,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] != "HEAD":
            async for piece in self._blobs.read(self._copy):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


async def _task_of(request: Request, query: BlobQuery) -> Task | None:
    """Workers serve all tenants: they name the task that they need or made the file for."""
    return await request.own_task(query.task_id) if query.task_id else None


def _tenant(request: Request, task: Task | None) -> str | None:
    return task.tenant if task else request.caller.tenant


def _expected_digest(request: Request, query: PutBlobQuery) -> str | None:
    found = SHA_256.search(request.headers.get("content-digest", ""))
    try:
        given = base64.b64decode(found[1], validate=True).hex() if found else None
    except binascii.Error:
        raise InvalidBody("content-digest", "is not Base64") from None
    if query.sha256 and given not in (None, query.sha256):
        raise InvalidBody("sha256", "differs from the Content-Digest header")
    return query.sha256 or given


@asynccontextmanager
async def _turn(uploads: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await uploads.acquire()
    except TimeoutError:
        raise Overloaded() from None
    try:
        yield
    finally:
        uploads.release()
