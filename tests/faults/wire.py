"""A proxy between client and server that can lose replies, hold them back, or cut the line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path


class Wire:
    def __init__(self, target: str) -> None:
        self.target = target
        self.lose_reply: Callable[[bytes], bool] = lambda request: False
        self.silence_at: Callable[[bytes], bool] = lambda request: False  # its reply is held back, and others
        self.lost = 0
        self.silent = False  # requests arrive, answers do not
        self.down = False  # new connections fail; `cut` closes existing ones
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def connections(self) -> int:
        return len(self._writers) // 2

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.close()
            return
        to_server_reader, to_server = await asyncio.open_unix_connection(self.target)
        self._writers |= {writer, to_server}
        state = {"lose": False}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, to_server, writer, state))
                group.create_task(self._answer(to_server_reader, writer, to_server, state))
        except* OSError:
            pass
        for one in (writer, to_server):
            self._writers.discard(one)
            one.close()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
        state: dict[str, bool],
    ) -> None:
        while data := await reader.read(1 << 16):
            if self.lose_reply(data):
                state["lose"] = True
            self.silent = self.silent or self.silence_at(data)
            to_server.write(data)
            await to_server.drain()
        to_server.close()

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        to_server: asyncio.StreamWriter,
        state: dict[str, bool],
    ) -> None:
        while data := await reader.read(1 << 16):
            if state["lose"]:  # it ran; its answer is lost
                self.lost += 1
                break
            while self.silent:
                await asyncio.sleep(0.01)
            writer.write(data)
            await writer.drain()
        writer.close()
        to_server.close()

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()


@contextlib.asynccontextmanager
async def wire(server_url: str, folder: Path) -> AsyncIterator[tuple[Wire, str]]:
    made = Wire(server_url.removeprefix("unix://"))
    path = folder / "wire"
    listener = await asyncio.start_unix_server(made.handle, path=str(path))
    try:
        yield made, f"unix://{path}"
    finally:
        listener.close()
        made.cut()
        await asyncio.sleep(0)
