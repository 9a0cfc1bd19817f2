"""Blobs of a gateway, as the store has them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path

from fairlead.blobs.local import PIECE, downloaded, pieces_of, size_of, type_of
from fairlead.client.bodies import OF_THE_KEY
from fairlead.client.transport import Part, path
from fairlead.errors import InvalidInput
from fairlead.model.blob import BlobRef, LocalFile
from fairlead.model.task import Task
from fairlead.shapes.blob import BlobAnswer


class Blobs(Part):
    async def put(
        self,
        source: Path | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
        tenant: str | None = None,
        task: Task | None = None,
    ) -> BlobRef:
        _check_tenant(tenant)
        answer = await self._transport.upload(
            BlobAnswer,
            path("api", "v1", "blobs"),
            partial(pieces_of, source),
            await asyncio.to_thread(size_of, source),
            task_id=task.task_id if task else None,
        )
        return answer.to_value().ref(name, content_type or type_of(name))

    async def fetch(self, ref: BlobRef, *, tenant: str | None = None, task: Task | None = None) -> LocalFile:
        _check_tenant(tenant)
        digest = ref.digest  # raises what is wrong with it before anything is asked
        content = self._content(path("api", "v1", "blobs", ref.blob), task.task_id if task else None)
        async with aclosing(content):
            return await downloaded(content, digest)

    async def _content(self, address: str, task_id: str | None) -> AsyncGenerator[bytes]:
        async with self._transport.download(address, task_id=task_id) as answer:
            async for piece in answer.aiter_bytes(PIECE):
                yield piece


def _check_tenant(tenant: str | None) -> None:
    if tenant is not None:
        raise InvalidInput("tenant", OF_THE_KEY)
