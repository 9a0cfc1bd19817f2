"""What slots are kept in: small named objects that are changed only if nobody else has changed them."""

import re
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from fairlead.errors import InvalidInput

URL = re.compile(r"[a-z][a-z0-9+.-]*://.*")
MOST_BYTES = 4096  # of an object; what is longer was not written by Fairlead


class Found(NamedTuple):
    content: bytes
    version: str  # another one after every change


class Objects(Protocol):
    """Names are paths; every method raises OSError."""

    async def read(self, name: str) -> Found | None: ...

    async def write(self, name: str, content: bytes, version: str | None) -> bool:
        """Whether it was written: only if the object has this version; None: only if there is none."""

    async def delete(self, name: str) -> None:
        """If it is there."""

    async def names(self, prefix: str) -> list[str]:
        """Of everything directly below this path."""


def objects_at(url: str) -> Objects:
    """In a folder or in an object store."""
    if not URL.fullmatch(url):
        raise InvalidInput(
            "url", f"{url!r} is not a URL, such as s3://bucket/prefix, file:///folder or memory://"
        )
    parts = urlsplit(url)
    if parts.scheme == "file":
        from fairlead.slots.folder import Folder  # it needs locks that Windows does not have

        if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
            raise InvalidInput("url", "name a folder by its whole path, such as file:///var/lib/slots")
        return Folder(Path(unquote(parts.path)))
    from fairlead.slots.bucket import Bucket  # a package that is installed as an extra

    return Bucket.at(url)
