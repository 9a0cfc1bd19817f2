"""`fairlead --complete LINE`: the values that the shell may offer for the last word of a line.

Somebody waits at the keyboard: what is not known within a fraction of a second is not offered, nothing is
started or written, and nothing is reported.
"""

import asyncio
import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.backend import Backend
    from fairlead.settings import Settings

LONGEST = "FAIRLEAD_COMPLETION_SECONDS"
LONGEST_SECONDS = 0.5
MOST_TASKS = 50

#: What the first argument of a command is.
ARGUMENTS = {
    "submit": "type",
    "job submit": "pipeline",
    "type pause": "type",
    "type resume": "type",
    **{f"limit {act}": "limit" for act in ("status", "set", "pause", "resume", "delete", "release")},
    **{f"task {act}": "task" for act in ("show", "explain", "cancel", "watch")},
    **{f"job {act}": "job" for act in ("show", "explain", "watch", "resume", "cancel")},
    "workers expire": "worker",
    "dlq show": "dead letter",
}
#: Commands that take any number of them.
REPEATED = {"workers drain": "worker", "dlq replay": "dead letter", "dlq purge": "dead letter"}
OPTIONS = {"--task-type": "type", "--feature-name": "pipeline", "submit --limit": "units"}
#: Options without a value.
FLAGS = frozenset({"--wait", "--watch", "--force", "--all", "--yes", "--shared", "--no-shared"})
WHERE = ("config", "engine", "data", "namespace", "url", "key")


@dataclass(frozen=True, slots=True)
class Wish:
    """A kind of value, where to look for it, and how it begins."""

    kind: str
    start: str
    where: dict[str, str] = field(default_factory=dict)  # the options that say which server


def complete(line: str) -> None:
    """Prints what fits, and ends this process: nothing may keep it from ending."""
    with contextlib.suppress(FairleadError, OSError, ValueError):  # ValueError: a quote that is still open
        seconds = float(os.environ.get(LONGEST, LONGEST_SECONDS))
        threading.Timer(seconds, os._exit, (0,)).start()
        wish = wish_of(line)
        names = asyncio.run(_look(wish)) if wish else []
        sys.stdout.writelines(f"{name}\n" for name in names)
        sys.stdout.flush()
    os._exit(0)


def wish_of(line: str) -> Wish | None:
    """What the last word of the line is meant to be, if we know values for it."""
    words = shlex.split(line)[1:]
    start = words.pop() if words and not line[-1].isspace() else ""
    plain: list[str] = []
    options: dict[str, str] = {}
    waiting = ""  # an option whose value comes next
    for word in words:
        if waiting:
            options[waiting], waiting = word, ""
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            options[name] = value
            waiting = "" if equals or name in FLAGS else name
        else:
            plain.append(word)
    if not waiting and start.startswith("-"):
        waiting, _, start = start.partition("=")
    kind = _kind(plain, waiting)
    where = {name: options[f"--{name}"] for name in WHERE if options.get(f"--{name}")}
    return Wish(kind, start, where) if kind else None


def _kind(plain: Sequence[str], option: str) -> str | None:
    if option:
        return OPTIONS.get(option) or OPTIONS.get(f"{' '.join(plain[:1])} {option}")
    return REPEATED.get(" ".join(plain[:2])) or ARGUMENTS.get(" ".join(plain))


async def _look(wish: Wish) -> list[str]:
    from fairlead.cli.options import ClientOptions, opened_backend

    given = {name: Path(value) if name in ("config", "data") else value for name, value in wish.where.items()}
    settings = _running(ClientOptions(**given).client_settings())  # type: ignore[arg-type]
    async with opened_backend(settings) as backend:
        names = await READERS[wish.kind](backend)
    return sorted(name for name in names if name.startswith(wish.start))


def _running(settings: "Settings") -> "Settings":
    """Not the embedded server, which would be started, but the one that runs there, if it does."""
    from urllib.parse import quote

    from msgspec.structs import replace

    from fairlead.store.opening import engine_folder

    if settings.engine.url:
        return settings
    url = f"unix://{quote(str(engine_folder(settings).socket))}"
    return replace(settings, engine=replace(settings.engine, url=url))


async def _types(backend: "Backend") -> Iterable[str]:
    return await backend.task_types()


async def _pipelines(backend: "Backend") -> Iterable[str]:
    from fairlead.store.store import Store

    return await backend.jobs.pipelines.names() if isinstance(backend, Store) else []


async def _limits(backend: "Backend") -> Iterable[str]:
    return [limit.name for limit in await backend.limits.all() if limit.tenant is None]


async def _units(backend: "Backend") -> Iterable[str]:
    return [f"{name}=" for name in await _limits(backend)]


async def _tasks(backend: "Backend") -> Iterable[str]:
    return [task.task_id for task in (await backend.list_tasks(limit=MOST_TASKS)).tasks]


async def _jobs(backend: "Backend") -> Iterable[str]:
    from fairlead.client.job_backend import jobs_of

    return [job.job_id for job in (await jobs_of(backend).page(limit=MOST_TASKS)).jobs]


async def _dead_letters(backend: "Backend") -> Iterable[str]:
    return [task.task_id for task in (await backend.dead_letters.page(MOST_TASKS)).tasks]


async def _workers(backend: "Backend") -> Iterable[str]:
    return [worker.worker_id for worker in (await backend.stats()).workers]


READERS: "dict[str, Callable[[Backend], Awaitable[Iterable[str]]]]" = {
    "type": _types,
    "pipeline": _pipelines,
    "limit": _limits,
    "units": _units,
    "task": _tasks,
    "job": _jobs,
    "dead letter": _dead_letters,
    "worker": _workers,
}
