"""The lifespan of an ASGI application: startup before the first request, shutdown after the last."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message

from fairlead.background import cancel_all


class StartFailed(RuntimeError):
    """The application could not start; the message is its reason."""


class Lifespan:
    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}  # what the application shares with each of its requests
        self._app = app
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()

    @classmethod
    @asynccontextmanager
    async def of(cls, app: ASGIApp) -> AsyncIterator["Lifespan"]:
        """An application that raises does not support lifespans, which is allowed."""
        lifespan = cls(app)
        running = asyncio.create_task(lifespan._run())
        try:
            is_known = await lifespan._ask("startup", running)
            yield lifespan
            if is_known:
                await lifespan._ask("shutdown", running)
        finally:
            await cancel_all(running)

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        await self._app(scope, self._messages.get, self._answers.put)

    async def _ask(self, what: str, running: "asyncio.Task[None]") -> bool:
        """Returns whether the application has answered; raises StartFailed when it cannot start."""
        self._messages.put_nowait({"type": f"lifespan.{what}"})
        answering = asyncio.create_task(self._answers.get())
        await asyncio.wait({answering, running}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            answering.cancel()
            return False
        answer = answering.result()
        if answer["type"] == f"lifespan.{what}.failed":
            raise StartFailed(answer.get("message", ""))
        return True
