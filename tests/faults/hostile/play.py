"""One attack after another on a server with keys, while honest clients use it."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.faults.gateways import Server
from tests.faults.hostile import key_holders, strangers
from tests.faults.hostile.lines import ATTACKS, Attacker
from tests.faults.hostile.others import Others

__all__ = ["key_holders", "strangers"]  # they register their attacks

SCOPES = ("submit", "read", "cancel")


@dataclass(frozen=True)
class Siege:
    server: Server
    keys: Mapping[Attacker, str]
    others_key: str

    async def withstand(self, *attacks: str, seconds: float, share: float = 1) -> dict[str, Any]:
        """The effect of these concurrent attacks on other clients, and the memory that the server used."""
        meter = Meter(self.server)
        others = Others("127.0.0.1", self.server.port, self.others_key)
        over = asyncio.Event()
        meter.reset()
        requests = asyncio.create_task(others.until(over))
        try:
            tallies = await asyncio.gather(*(self._attack(attack, seconds, share) for attack in attacks))
        finally:
            over.set()
            await requests
        return {
            **others.figures(),
            "memory_mb": meter.peak(),
            "attack": {name: sum(tally[name] for tally in tallies) for name in tallies[0]},
        }

    async def _attack(self, attack: str, seconds: float, share: float) -> dict[str, float]:
        key = self.keys[ATTACKS[attack].by]
        arguments = ("127.0.0.1", str(self.server.port), str(seconds), str(share), key)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.faults.hostile", attack, *arguments, stdout=PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        tally: dict[str, float] = json.loads(output)
        return tally


class Meter:
    """The most memory that the server had resident, in MB."""

    def __init__(self, server: Server) -> None:
        assert server.process
        self._folder = Path("/proc") / str(server.process.pid)

    def reset(self) -> None:
        (self._folder / "clear_refs").write_text("5")

    def peak(self) -> int:
        status = (self._folder / "status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1000


@contextlib.asynccontextmanager
async def besieged(engine: str, server: Server) -> AsyncIterator[Siege]:
    async with Store.connect(engine) as store:
        client = await store.api_keys.create("attacker", SCOPES, tenant="attacker")
        worker = await store.api_keys.create("worker", ("worker",))
        others = await store.api_keys.create("others", SCOPES, tenant="others")
        await store.limits.set("scarce", Slots(limit=1))
        await store.limits.acquire("scarce", lease_ms=3_600_000)
        keys: dict[Attacker, str] = {"stranger": "", "client": client.key_text, "worker": worker.key_text}
        yield Siege(server, keys, others.key_text)
