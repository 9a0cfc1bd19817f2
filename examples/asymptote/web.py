"""Serves the page, and passes on what it says to the gateway, whose key the browser never has."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

GATEWAY = os.environ.get("FAIRLEAD_URL", "http://127.0.0.1:8000")
KEY = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("FAIRLEAD_KEY")) else {}
MOST_BYTES = 1 << 20  # of a message; the gateway itself allows less

#: A picture may be hostile, too: as an image it runs no scripts, and outside of one this forbids them.
POLICY = "default-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


async def task(request: Request) -> Response:
    """A task as it is now, for the place in the queue."""
    async with httpx.AsyncClient(base_url=GATEWAY, headers=KEY, trust_env=False) as gateway:
        try:
            answer = await gateway.get(request.url.path)
        except httpx.TransportError:
            return Response(status_code=502)
    return Response(answer.content, answer.status_code, media_type=answer.headers["content-type"])


async def relay(browser: WebSocket) -> None:
    """Both ways until one side closes; then the other is closed, too."""
    if urlsplit(browser.headers.get("origin", "")).netloc != browser.headers.get("host"):
        await browser.close()  # a page of somebody else
        return
    await browser.accept()
    url = GATEWAY.replace("http", "ws", 1) + browser.url.path
    code = None
    with suppress(OSError, WebSocketException, WebSocketDisconnect):
        async with connect(url, additional_headers=KEY, max_size=MOST_BYTES, proxy=None) as gateway:
            upwards = asyncio.ensure_future(pass_on(browser, gateway))
            try:
                while True:
                    await browser.send_text(str(await gateway.recv()))
            finally:
                upwards.cancel()
                code = gateway.close_code
    with suppress(RuntimeError):  # it was the browser that closed
        await browser.close(1011 if code in (None, 1005, 1006) else code)


async def pass_on(browser: WebSocket, gateway: ClientConnection) -> None:
    with suppress(KeyError, WebSocketException):  # bytes, which the gateway would refuse, or it has closed
        async for text in browser.iter_text():
            await gateway.send(text)
    await gateway.close()


class Page(StaticFiles):
    """Files of the page under its policy."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"content-security-policy", POLICY.encode()))
            await send(message)

        await super().__call__(scope, receive, with_policy)


routes = [
    Route("/api/v1/tasks/{task_id:uuid}", task),
    WebSocketRoute("/ws/tasks", relay),
    WebSocketRoute("/ws/interactive/{task_id:uuid}", relay),
    Mount("/", Page(directory=Path(__file__).with_name("page"), html=True)),
]
web = Starlette(routes=routes)

if __name__ == "__main__":
    uvicorn.run(web, port=8080, ws_max_size=MOST_BYTES)
