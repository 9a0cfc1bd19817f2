"""Blobs: requests and answers."""

from typing import Annotated

from msgspec import Meta

from fairlead.model.blob import StoredBlob
from fairlead.shapes.base import Body, Moment, Shape, Uuid


class BlobQuery(Body, frozen=True):
    task_id: Uuid | None = None  # the blob is of this task: its tenant's, and if put, kept for its job


class PutBlobQuery(BlobQuery, frozen=True):
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None  # refused if the content has another


class BlobAnswer(Shape[StoredBlob]):
    blob: str
    size: int
    expires_at: Moment
