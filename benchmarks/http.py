"""Tasks a second over HTTP, single and in batches of 100, beside an endpoint that only parses and answers.

`bare` is no product: Starlette under uvicorn with the same types and the same answer, and no store behind it.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.bench import NO_AOF, Bench, cpu_of, describe
from benchmarks.figures import Figure, Outcome
from tests.commands import FAIRLEAD

CONNECTIONS = 32
BATCH = 100
TASK = {
    "task_type": "generate_image",
    "parameters": {
        "prompt": "a robot that sorts ropes on a pier, in the style of an etching",
        "size": [512, 512],
    },
    "priority": "high",
    "user_id": "user-1234",
    "timeout_seconds": 300,
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
}
BODIES = {1: ("/api/v1/tasks", TASK), BATCH: ("/api/v1/tasks/batch", {"tasks": [TASK] * BATCH})}
RATE, CPU = "rate", "server CPU"
UNBOUNDED = {
    "FAIRLEAD_ADMISSION__MAX_QUEUED": "1000000000",
    "FAIRLEAD_ADMISSION__MAX_QUEUED_PER_USER": "1000000000",
}


async def run(bench: Bench) -> Outcome:
    seconds, rounds, connections = (0.3, 1, 4) if bench.quick else (5.0, 5, CONNECTIONS)
    outcome = Outcome(notes=[f"{connections} connections, {_tool()}, one server process, no AOF"])
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    with bench.serve(*NO_AOF) as url, tempfile.TemporaryDirectory() as folder:
        outcome.servers["store"] = await describe(url)
        command = [FAIRLEAD, "server", "--engine", url, "--namespace", f"bench-{os.getpid()}", "--port", "0"]
        bare = [sys.executable, "-m", "benchmarks.http_bare"]
        with served(command, folder) as fairlead, served(bare, folder) as nothing:
            for _ in range(rounds):
                for size in BODIES:
                    for name, server in (("fairlead", fairlead), ("bare", nothing)):
                        rate, cpu = _load(server, size, seconds, connections, Path(folder))
                        seen[f"submit {size}, {name}", RATE].append(rate)
                        seen[f"submit {size}, {name}", CPU].append(cpu)
    for (case, measure), values in seen.items():
        unit, better = ("tasks/s", "more") if measure == RATE else ("us/task", "less")
        outcome.figures.append(Figure(case, measure, unit, values, better))  # type: ignore[arg-type]
    for size, target in ((1, ">= 0.4, moonshot 0.6"), (BATCH, "")):
        above, below = f"submit {size}, fairlead", f"submit {size}, bare"
        outcome.compare(f"submit {size}: fairlead to bare", (above, RATE), (below, RATE), target)
    return outcome


@contextlib.contextmanager
def served(
    command: list[str], folder: str, settings: Mapping[str, str] = UNBOUNDED
) -> Iterator[tuple[int, str]]:
    """Its process and its address, which it prints first."""
    env = {**os.environ, "HOME": folder, **UNBOUNDED, **settings}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout
        match = re.search(r"http://\S+", process.stdout.readline())
        assert match, f"{command} did not start"
        yield process.pid, match[0]
    finally:
        process.terminate()
        process.communicate()


def _tool() -> str:
    return "wrk" if shutil.which("wrk") else "a client of our own in another process"


def _load(
    server: tuple[int, str], size: int, seconds: float, connections: int, folder: Path
) -> tuple[float, float]:
    """Tasks a second, and microseconds of the server's CPU for each."""
    pid, address = server
    path, body = BODIES[size]
    content = folder / f"{size}.json"
    content.write_text(json.dumps(body))
    if shutil.which("wrk"):
        script = folder / "post.lua"
        script.write_text(
            f'wrk.method = "POST"\nwrk.body = io.open("{content}"):read("*a")\n'
            'wrk.headers["Content-Type"] = "application/json"\n'
        )
        options = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script)]
        command = ["wrk", *options, address + path]
    else:
        command = [sys.executable, "-m", "benchmarks.http_load", address, path, str(content)]
        command += [str(connections), str(seconds)]
    before = cpu_of(pid)
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_of(pid) - before
    assert "Non-2xx" not in output, output
    done = re.search(r"(\d+) requests in ([\d.]+)(m?s)", output)
    assert done, output
    tasks = int(done[1]) * size
    took = float(done[2]) / (1000 if done[3] == "ms" else 1)
    return tasks / took, used / tasks * 1e6
