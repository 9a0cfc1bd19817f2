"""`fairlead worker` raises the limit of open files for all of its processes."""

from contextlib import AsyncExitStack

from tests.open_files import WANTED, limit_of, needs_room, soft_limit
from tests.workers import WorkerLauncher


@needs_room
async def test_every_process_of_a_worker_has_it(launcher: WorkerLauncher) -> None:
    async with AsyncExitStack() as stack:
        with soft_limit(1024):
            workers = await stack.enter_async_context(launcher.workers("tests.apps.failing:fl"))
        assert limit_of(workers.process.pid) == WANTED
        assert [limit_of(pid) for pid in workers.children()] == [WANTED]
        assert workers.log_text().count(f"INFO open_files_raised limit={WANTED} before=1024") == 1
        assert await workers.end() == 0
