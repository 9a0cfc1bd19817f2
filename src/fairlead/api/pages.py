"""Static pages: the OpenAPI page, and the list of routes for people."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from starlette.types import Receive, Scope, Send

from fairlead import __version__
from fairlead.api.endpoint import JSON, SECURITY, Headers, encode, send_bytes
from fairlead.api.openapi import openapi_of
from fairlead.api.table import Route

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top }
:root { color-scheme: light dark }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none'"
HTML: Headers = [
    (b"content-type", b"text/html; charset=utf-8"),
    *((name, POLICY.encode() if name == b"content-security-policy" else value) for name, value in SECURITY),
]


class Page:
    def __init__(self, body: bytes, headers: Headers) -> None:
        self._body = body
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 200, self._body, self._headers)


def make_pages(routes: Sequence[Route]) -> dict[str, Page]:
    return {
        "/openapi.json": Page(encode(openapi_of(routes)), JSON),
        "/docs": Page(_docs(routes).encode(), HTML),
    }


def _docs(routes: Sequence[Route]) -> str:
    rows = "".join(
        f"<tr><td>{route.method}</td><td><code>{escape(route.path)}</code></td><td>{escape(route.summary)}</td>"
        f"<td>{route.scope or '-'}</td></tr>\n"
        for route in routes
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Fairlead {__version__}</title>\n'
        f"<style>{STYLE}</style>\n<h1>Fairlead {__version__}</h1>\n"
        '<p>The bodies, answers and errors are in <a href="/openapi.json">openapi.json</a>.</p>\n'
        f"<table>\n<tr><th>method<th>path<th>what it does<th>scope</tr>\n{rows}</table>\n</html>\n"
    )
