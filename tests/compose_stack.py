"""The programs of examples/ai_gateway as compose.yaml runs them: by their commands, without containers."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uuid_utils
import yaml  # type: ignore[import-untyped]

from tests.commands import FAIRLEAD
from tests.servers import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ai_gateway"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {name: facts for name, facts in COMPOSE["services"].items() if "build" in facts}
PROGRAMS = {"python": sys.executable, "fairlead": FAIRLEAD}
ENDPOINTS = ("prompt_enhancer", "fast_chat_llm", "image_gen", "model_3d_gen")


@dataclass(frozen=True)
class ComposeStack:
    """Where the programs are on this machine: the ports in compose.yaml may be taken."""

    ports: dict[str, int]
    environment: dict[str, str]
    folder: Path

    def here(self, text: str) -> str:
        for name, port in self.ports.items():
            text = re.sub(rf"//{name}:\d+", f"//127.0.0.1:{port}", text)
        return text

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def command(self, name: str) -> list[str]:
        program, *arguments = shlex.split(OURS[name]["command"])
        text = self.here(shlex.join(arguments)).replace("0.0.0.0", "127.0.0.1")
        if name in self.ports:
            text = re.sub(r"--port \d+", f"--port {self.ports[name]}", text)
        return [PROGRAMS[program], *shlex.split(text)]

    @contextlib.asynccontextmanager
    async def running(self, name: str, *more: str) -> AsyncIterator[asyncio.subprocess.Process]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *self.command(name),
                *more,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin", **self.environment},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            async with asyncio.timeout(30):
                await process.wait()


def make_compose(engine: str, folder: Path, database: str = "") -> ComposeStack:
    """On this engine, in its own namespace; with a history if there is a database."""
    ports = {name: free_port() for name in OURS if "--port" in OURS[name]["command"]}
    bare = ComposeStack(ports, {}, folder)
    places = {name: bare.here(value) for name, value in OURS["gateway"]["environment"].items()}
    places |= {"REDIS_URL": engine, "DATABASE_URL": database}
    return ComposeStack(
        ports, {**places, "FAIRLEAD_ENGINE__NAMESPACE": f"example-{uuid_utils.uuid7()}"}, folder
    )


async def get(url: str) -> httpx.Response | None:
    async with httpx.AsyncClient(trust_env=False) as client:
        with contextlib.suppress(httpx.TransportError):
            return await client.get(url)
    return None


async def answers(url: str) -> Any:
    """Once it does."""

    came: list[Any] = []

    async def is_there() -> bool:
        answer = await get(url)
        if answer is not None and answer.is_success:
            came.append(answer.json())
        return bool(came)

    await wait_until(is_there, 40, f"{url} answers")
    return came[0]


@contextlib.asynccontextmanager
async def endpoints(compose: ComposeStack, faster: float = 3000) -> AsyncIterator[None]:
    """All of them, faster than in real life by this factor."""
    async with contextlib.AsyncExitStack() as stack:
        for name in ENDPOINTS:
            await stack.enter_async_context(compose.running(name, "--faster", str(faster)))
        for name in ENDPOINTS:
            await answers(compose.url(name) + "/stats")
        yield
