"""References to uploaded files, as they are in parameters and results, and where a file is kept."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from fairlead.errors import InvalidInput, UnknownBlob

MOST_REFS = 64  # different blobs that one task may name
MARK = '"blob":"sha256:'
REF = re.compile(r'"blob":"sha256:([0-9a-f]{64})"')  # in JSON without spaces; within a text it is escaped
BLOB_ID = re.compile(r"sha256:([0-9a-f]{64})")


class BlobRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that was uploaded, as a parameter or a result: `{"blob": "sha256:...", "size": 12, ...}`."""

    blob: Annotated[str, msgspec.Meta(pattern=f"^{BLOB_ID.pattern}$")]  #: the SHA-256 of its content
    size: Annotated[int, msgspec.Meta(ge=0)]  #: in bytes
    name: str | None = None  #: what the uploader calls it
    content_type: str | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 in hexadecimal."""
        return digest_of(self.blob)


class StoredBlob(NamedTuple):
    blob: str
    size: int
    expires_at: int  # ms
    is_new: bool = False

    def ref(self, name: str | None, content_type: str | None) -> BlobRef:
        return BlobRef(blob=self.blob, size=self.size, name=name, content_type=content_type)


class LocalFile(NamedTuple):
    """A blob on this machine. A temporary one is for the caller, who deletes it."""

    path: Path
    is_temporary: bool


def as_ref(given: BlobRef | Mapping[str, Any]) -> BlobRef:
    """Raises InvalidInput for what is no reference."""
    try:
        return msgspec.convert(given, BlobRef)
    except msgspec.ValidationError as problem:
        raise InvalidInput("blob", f"is not a reference, as an upload returns it: {problem}") from None


def digest_of(blob: str) -> str:
    """What cannot be the name of a blob names none: UnknownBlob."""
    if found := BLOB_ID.fullmatch(blob):
        return found[1]
    raise UnknownBlob()


def digests_in(text: str) -> list[str]:
    """The blobs that JSON without spaces refers to, each once."""
    if MARK not in text:  # nearly always, and much faster than the search
        return []
    digests = [*dict.fromkeys(REF.findall(text))]
    if len(digests) > MOST_REFS:
        raise InvalidInput("parameters", f"name {len(digests)} blobs, at most {MOST_REFS} are accepted")
    return digests


def names_blobs(value: object) -> bool:
    try:
        return MARK.encode() in msgspec.json.encode(value)
    except (TypeError, ValueError):  # it is not JSON, which is found where it is used
        return False
