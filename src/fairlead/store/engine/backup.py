"""Copies of the embedded server's data: a snapshot of one instant, made by the server while it works."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from fairlead.errors import EngineFailed
from fairlead.store.connection import Connection
from fairlead.store.engine.folder import EngineFolder, make_private_folder

LOOK_SECONDS = 0.05
# How the server names the files that it starts from: a snapshot, to which later changes are appended.
APPENDED = "appendonlydir"
BASE, MANIFEST = "appendonly.aof.1.base.rdb", "appendonly.aof.manifest"
CONTENT = f"file {BASE} seq 1 type b\n"


async def copy_engine(connection: Connection, folder: EngineFolder, target: Path) -> None:
    """Writes the snapshot to this file. The server forks for it: it works on meanwhile."""
    before = await _persistence(connection)
    await connection.call("BGSAVE", "SCHEDULE")
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = await _persistence(connection)
        if now["rdb_saves"] > before["rdb_saves"]:
            break
        if now["rdb_last_bgsave_status"] != "ok" and not int(now["rdb_bgsave_in_progress"]):
            raise EngineFailed(f"the embedded server could not write a snapshot: see {folder.log}")
    written = folder.path / "dump.rdb"
    await asyncio.to_thread(shutil.move, written, target)
    await asyncio.to_thread(_sync, target)


def place_engine(snapshot: Path, folder: EngineFolder) -> None:
    """The next server of this folder starts from this snapshot."""
    folder.prepare()
    appended = folder.path / APPENDED
    make_private_folder(appended)
    shutil.copyfile(snapshot, appended / BASE)
    _sync(appended / BASE)
    (appended / MANIFEST).write_text(CONTENT)
    _sync(appended / MANIFEST)


def has_data(folder: EngineFolder) -> bool:
    return (folder.path / APPENDED).exists()


async def _persistence(connection: Connection) -> dict[str, Any]:
    text = (await connection.call("INFO", "persistence")).decode()
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    found: dict[str, Any] = dict(pairs)
    return found | {"rdb_saves": int(found["rdb_saves"])}


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
