"""`--auto-restore`: a server that notices a loss of data restores it from the history by itself."""

import asyncio
import contextlib

from fairlead.errors import FairleadError, RestoreRefused
from fairlead.history.opening import open_history
from fairlead.history.restoring import Restore
from fairlead.log.events import EventLog
from fairlead.store.epochs import SEALED_WHEN
from fairlead.store.store import Store

EVERY_SECONDS = 0.5
PAUSE_SECONDS = 5.0  # after an attempt that failed

log = EventLog("fairlead.api")


class AutoRestore:
    """Of a namespace. Of several servers one restores, the others wait for it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trouble = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            problem = self._store.connection.membership.problem
            if problem and problem.standing in SEALED_WHEN and not await self._restore():
                await asyncio.sleep(PAUSE_SECONDS)

    async def _restore(self) -> bool:
        """Whether it was restored, by this process or another one."""
        store = self._store
        if not (history := open_history(store.settings)):
            self._complain("there is no history: set history.url, or start without --auto-restore")
            return False
        try:
            restore = Restore(store, history)
            if not await restore.is_needed():
                return True
            await store.epochs.seal()  # it may be noticed here first
            done = await restore.run(store.settings.hold_ms)
        except RestoreRefused as refused:
            self._complain(str(refused))
            return False
        except FairleadError as problem:
            self._complain(str(problem))
            return False
        finally:
            await history.close()
        tasks, jobs = sum(done.tasks.values()), sum(done.jobs.values())
        log.warning("restored", tasks=tasks, jobs=jobs, steps_again=done.steps_again)
        for task in done.missing:
            log.error("not_restored", task=task)
        for name in done.unknown_limits:
            log.error("limit_not_restored", limit=name, next_step=f"fairlead limit set {name}")
        with contextlib.suppress(FairleadError):
            namespace = store.connection.keys.namespace
            await store.audit.record("fairlead", "restore", namespace, None, {"tasks": tasks, "jobs": jobs})
        self._trouble = ""
        return True

    def _complain(self, trouble: str) -> None:
        """Once for each kind of trouble."""
        if trouble != self._trouble:
            log.error("not_restored_yet", problem=trouble)
        self._trouble = trouble
