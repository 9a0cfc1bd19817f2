"""`fairlead simulate --record`: the work of the past as a trace."""

import asyncio
from pathlib import Path

from fairlead.cli.history_options import opened_history
from fairlead.cli.moments import read_moment
from fairlead.cli.output import say
from fairlead.errors import InvalidInput
from fairlead.history.past import past_tasks
from fairlead.settings import Settings
from fairlead.simulate.trace_writer import trace_writer


def record_trace(settings: Settings, path: Path, since: str) -> None:
    began = read_moment("--since", since)
    assert began is not None
    count = asyncio.run(_record(settings, path, began))
    if not count:
        path.unlink()
        raise InvalidInput(
            "--since", f"no task was submitted since {since} and has run: name an earlier time"
        )
    say(f"fairlead: wrote {count} tasks to {path}")


async def _record(settings: Settings, path: Path, since: int) -> int:
    async with opened_history(settings) as history:
        try:
            with trace_writer(path) as trace:
                async for task in past_tasks(history, since):
                    trace.add(task)
        except OSError as problem:
            raise InvalidInput("--record", f"cannot write {path}: {problem.strerror}") from None
    return trace.count
