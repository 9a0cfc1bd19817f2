"""The acts that a private server has run, each with its server time, as the server's slow log lists them."""

from dataclasses import dataclass

from redis.asyncio import Redis

from fairlead.store.scripts import edition

#: Microseconds. Less than any act takes and more than nearly every command inside one: those are logged as
#: well, and logging each of them would slow the act down.
EVERY_ACT = 10


@dataclass(frozen=True, slots=True)
class Ran:
    act: str
    us: int


def log_above(us: int) -> tuple[str, ...]:
    """Options of a server that logs what takes longer."""
    return ("--slowlog-log-slower-than", str(us), "--slowlog-max-len", "1000000")


async def take(client: Redis) -> list[Ran]:
    """The acts logged since the last call, oldest first. The log is empty afterwards."""
    logged = await client.slowlog_get(-1)
    await client.slowlog_reset()
    words = [(entry["command"].split(b" ", 2), entry["duration"]) for entry in reversed(logged)]
    return [
        Ran(command[1].decode().removeprefix(f"{edition()}_"), us)
        for command, us in words
        if command[0].upper() == b"FCALL"
    ]
