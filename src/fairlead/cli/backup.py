"""`fairlead backup`: a copy of the embedded engine and of SQLite while they work, and the way back."""

import asyncio
import contextlib
import shutil
from pathlib import Path

import msgspec

from fairlead import __version__
from fairlead.cli.options import DEFAULTS, StoreOptions
from fairlead.clock import now_ms
from fairlead.errors import InvalidInput
from fairlead.history.opening import FILE, History, history_url, open_history
from fairlead.history.restoring import LOST, Restore, greatest_number
from fairlead.history.sqlite import Sqlite
from fairlead.settings import Settings
from fairlead.settings.folders import data_folder
from fairlead.store.engine.backup import copy_engine, has_data, place_engine
from fairlead.store.opening import connected_store, engine_folder
from fairlead.store.store import Store
from fairlead.times import time_text

ENGINE, ABOUT = "engine.rdb", "backup.json"
MADE_BY_OTHERS = "is only for the embedded engine: copy a server of your own by its own means"


class About(msgspec.Struct):
    """What a backup has; written last, so that one that was interrupted lacks it."""

    at: str
    version: str
    namespaces: list[str]
    history: bool  # SQLite is in it


async def backup(folder: Path, /, *, options: StoreOptions = DEFAULTS) -> None:
    """Copy the embedded engine and the history in SQLite to FOLDER, while everything runs.

    Go back to it with `fairlead restore --from FOLDER --data OTHER`. Files of tasks are not copied.
    """
    settings, _ = options.read_settings()
    if settings.engine.url:
        raise InvalidInput("backup", MADE_BY_OTHERS)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput("FOLDER", f"{folder} is not empty: name a new folder")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = await _copy(settings, folder)
    except OSError as problem:
        raise InvalidInput("FOLDER", f"cannot write to {folder}: {problem.strerror}") from None
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder} has the data of {about.at}, {size} bytes.")
    if not about.history and settings.history.enabled:
        print("The history is not in it: copy its database by its own means.")


async def _copy(settings: Settings, folder: Path) -> About:
    """The engine first: what the history knows later is restored from it."""
    at = time_text(now_ms())
    async with connected_store(settings) as store:
        names = await _namespaces(store)
        await copy_engine(store.connection, engine_folder(settings), folder / ENGINE)
    has_history = False
    if history := open_history(settings):
        try:
            if isinstance(history.database, Sqlite):
                await history.number()
                await history.database.copy_to(folder / FILE)
                has_history = True
        finally:
            await history.close()
    about = About(at, __version__, names, has_history)
    (folder / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
    return about


async def _namespaces(store: Store) -> list[str]:
    found = [key async for key in store.connection.client.scan_iter(match="{fl:*}:meta", count=1000)]
    return sorted(key.decode().removeprefix("{fl:").removesuffix("}:meta") for key in found)


async def restore_backup(settings: Settings, folder: Path) -> None:
    """Into an empty data folder; then each namespace is brought up to what the history knows."""
    if settings.engine.url:
        raise InvalidInput("--from", MADE_BY_OTHERS)
    try:
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError):
        raise InvalidInput("--from", f"{folder} has no complete backup: there is no {ABOUT}") from None
    data, engine = data_folder(settings.engine), engine_folder(settings)
    if has_data(engine) or (data / FILE).exists():
        raise InvalidInput("--data", f"{data} has data already: name another folder")
    place_engine(folder / ENGINE, engine)
    if about.history and history_url(settings) == f"sqlite:///{data / FILE}":
        await asyncio.to_thread(shutil.copyfile, folder / FILE, data / FILE)
    async with connected_store(settings):  # the engine runs for all of them
        for name in about.namespaces:
            seconds = await _bring_up_to_date(settings.of_namespace(name))
            print(f"Namespace {name!r} is restored, and opens in {seconds:.0f} s.")
    print(f"{data} has the data of {about.at}. Start a server on it: fairlead up --data {data}")


async def _bring_up_to_date(settings: Settings) -> float:
    """Returns in how many seconds it opens: earlier handlers may still run until then."""
    history = open_history(settings)
    async with contextlib.AsyncExitStack() as stack:
        if history:
            stack.push_async_callback(history.close)
        store = await stack.enter_async_context(connected_store(settings))
        if history and await _is_behind(store, history):
            return (await Restore(store, history).run(settings.hold_ms)).opens_in
        made = await greatest_number(history) if history else 0
        return await store.epochs.accept("restored", settings.hold_ms, made)


async def _is_behind(store: Store, history: History) -> bool:
    restore = Restore(store, history)
    if not await restore.is_known():
        return False
    standing, _, _ = await restore.look()
    return standing in LOST
