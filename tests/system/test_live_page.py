"""The program on the page about HTTP that submits over a socket: it runs, and says what happens."""

import asyncio
import re
import sys
from pathlib import Path

from fairlead.model.reports import Completed
from fairlead.store.store import Store
from tests.api.serving import serving
from tests.servers import Server
from tests.waiting import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()


async def test_the_program_that_submits_over_a_socket(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    await live_store.workers.register("w")

    async def is_queued() -> bool:
        return (await live_store.stats()).queues["medium"].depth == 1

    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",  # else it tells nothing before it ends
            "-c",
            program.replace("8000", str(gateway.port)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        await wait_until(is_queued)
        assert process.stdout
        said = await process.stdout.readline()
        (task,) = (await live_store.claim("w")).tasks
        await live_store.complete("w", Completed(task.task_id, task.fence, {"drawn": True}))
        said += (await process.communicate())[0]
    lines = said.decode().splitlines()
    assert lines[0] == "SUBMITTED None"
    assert lines[-1] == "JOB_COMPLETE {'drawn': True}"
    assert (await live_store.get(task.task_id)).status == "completed"
