"""The part of the Python front that uploads and opens files of tasks."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fairlead.backend import Backend
from fairlead.model.blob import BlobRef, as_ref
from fairlead.worker.files import opened


class Files(ABC):
    @property
    @abstractmethod
    def backend(self) -> Backend: ...

    async def blob(
        self,
        source: str | Path | bytes,
        *,
        name: str | None = None,
        content_type: str | None = None,
        tenant: str | None = None,
    ) -> BlobRef:
        """Uploads a file, or its content, for tasks: the reference is a parameter, as often as you like.

        `tenant`: for tasks that are submitted with this option.
        """
        return await as_blob(self.backend, source, name=name, content_type=content_type, tenant=tenant)

    @asynccontextmanager
    async def open(
        self, ref: BlobRef | Mapping[str, Any], *, tenant: str | None = None
    ) -> AsyncIterator[BinaryIO]:
        """`async with fl.open(ref) as file:` reads an uploaded file, such as one in a result."""
        with opened(await self.backend.blobs.fetch(as_ref(ref), tenant=tenant)) as file:
            yield file


async def as_blob(
    backend: Backend,
    source: str | Path | bytes,
    *,
    name: str | None = None,
    content_type: str | None = None,
    tenant: str | None = None,
) -> BlobRef:
    """A file keeps its name, unless it is given another."""
    given = source if isinstance(source, bytes) else Path(source)
    name = name or (given.name if isinstance(given, Path) else None)
    return await backend.blobs.put(given, name=name, content_type=content_type, tenant=tenant)
