"""The files of the dashboard, from a fixed map: what is not in it does not exist, whatever the path."""

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from starlette.types import Receive, Scope, Send

from fairlead.api.endpoint import SECURITY, Headers, send_bytes
from fairlead.api.request import headers_of

INDEX = "index.html"
#: The first part of the address of every page; the browser shows the page (`dashboard/pages/index.js`).
PAGES = (
    *("tasks", "jobs", "limits", "types", "workers"),
    *("dead-letters", "crons", "audit", "what-if"),
)
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".LICENSE": "text/plain; charset=utf-8",
}
#: Nothing inline, nothing from elsewhere, in no frame; and no script may turn a text into markup.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS: Headers = [
    *(header for header in SECURITY if header[0] not in (b"content-security-policy", b"cache-control")),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-cache"),  # kept, but asked for with its ETag each time
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class DashboardFile:
    def __init__(self, body: bytes, media: str) -> None:
        self._body = body
        self._etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'.encode()
        self._headers: Headers = [(b"content-type", media.encode()), (b"etag", self._etag), *HEADERS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = headers_of(scope).get("if-none-match", "").encode()
        if self._etag in known.replace(b"W/", b"").split(b", "):
            await send({"type": "http.response.start", "status": 304, "headers": self._headers})
            await send({"type": "http.response.body"})
            return
        await send_bytes(send, 200, self._body, self._headers)


def dashboard_files() -> dict[str, DashboardFile]:
    """By path. Every page is the same file: which one it shows is decided in the browser."""
    folder = files("fairlead") / "dashboard"
    found = {f"/dashboard/{path}": file for path, file in _all_files(folder)}
    index = found.pop(f"/dashboard/{INDEX}")
    shown = {path: index for page in PAGES for path in (f"/{page}", f"/{page}/{{rest:path}}")}
    return found | shown | {"/": index}


def _all_files(folder: Traversable, under: str = "") -> list[tuple[str, DashboardFile]]:
    found: list[tuple[str, DashboardFile]] = []
    for entry in folder.iterdir():
        path = under + entry.name
        if entry.is_dir():
            found += _all_files(entry, f"{path}/")
        elif media := MEDIA.get(PurePosixPath(entry.name).suffix):
            found.append((path, DashboardFile(entry.read_bytes(), media)))
    return found
