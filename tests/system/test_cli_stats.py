"""`fairlead stats` and `fairlead workers`, and the error of every command without a server."""

import json
from pathlib import Path

import pytest

from fairlead.model.reports import Completed
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.commands import Shell
from tests.servers import Server

TASK_ID = "01890000-0000-7000-8000-000000000000"
LOOKING = [("stats",), ("workers", "list"), ("limit", "status"), ("limit", "status", "gpu"), ("dlq", "list")]
LOOKING += [("task", "list"), *(("task", command, TASK_ID) for command in ("show", "explain", "watch"))]
ACTING = [("workers", "drain", "w"), ("limit", "release", "gpu", "x", "--force"), ("task", "cancel", TASK_ID)]
ACTING += [("dlq", "replay", "--all"), ("dlq", "purge", "--all")]
JOINING = [("submit", "draw"), ("limit", "set", "gpu", "--limit", "1")]


async def test_stats_count_what_waits_runs_and_ended(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w", capacity=4)
    await live_store.submit(*[NewTask(task_type="draw", priority=p) for p in ("high", "high", "low")])
    await live_store.submit(NewTask(task_type="draw", delay_seconds=60))
    task, _ = (await live_store.claim("w", 2)).tasks
    await live_store.complete("w", Completed(task.task_id, task.fence))
    stats = json.loads((await shell.run("stats", "--output", "json")).out)
    assert {name: queue["depth"] for name, queue in stats["queues"].items()} == {
        "high": 0,
        "medium": 0,
        "low": 1,
    }
    assert stats["workers"] == {
        "active": 1,
        "draining": 0,
        "dead": 0,
        "total_capacity": 4,
        "used_capacity": 1,
    }
    assert (stats["throughput"]["completed_last_minute"], stats["delayed"]) == (1, 1)
    table = (await shell.run("stats")).out
    assert "running      1 of 4" in table
    assert "last minute  1 completed, 0 failed, 0 cancelled" in table
    assert "estimates" not in table  # nothing waited for an estimate


async def test_stats_say_how_true_estimates_were(live_store: Store, shell: Shell) -> None:
    quality = '{"coverage_p90": 0.75, "median_error_seconds": 1.5, "count": 4}'
    await live_store.upkeep.elect("me", 60_000)
    assert await live_store.estimates.learn("me", {"quality": quality})
    assert "estimates    75 % of 4 started within p90, median error 1.5 s" in (await shell.run("stats")).out


async def test_workers_are_listed_with_what_they_run(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register(
        "w1", capacity=4, reserve=1, name="studio", capabilities=["cuda"], task_types=["draw", "sing"]
    )
    await live_store.submit(NewTask(task_type="draw"))
    await live_store.claim("w1")
    rows = [line.split("  ") for line in (await shell.run("workers", "list")).out.splitlines()[1:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[:-1] for row in cells] == [["w1", "studio", "active", "1 of 4", "1", "cuda", "draw, sing"]]
    (worker,) = json.loads((await shell.run("workers", "list", "--output", "json")).out)["workers"]
    assert (worker["worker_id"], worker["status"], worker["capacity"]) == ("w1", "active", 4)
    assert worker["current_load"] == 1


async def test_a_drained_worker_is_given_nothing_more(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w")
    assert (await shell.run("workers", "drain", "w")).out == "w is draining\n"
    await live_store.submit(NewTask(task_type="draw"))
    assert (await live_store.claim("w")).draining


async def test_all_live_workers_of_a_name_are_drained(live_store: Store, shell: Shell) -> None:
    for worker, name in (("w1", "studio"), ("w2", "studio"), ("w3", "attic")):
        await live_store.workers.register(worker, name=name)
    answer = await shell.run("workers", "drain", "--name", "studio", "--output", "json")
    assert set(json.loads(answer.out)["draining"]) == {"w1", "w2"}
    states = {worker.worker_id: worker.state for worker in (await live_store.stats()).workers}
    assert states == {"w1": "draining", "w2": "draining", "w3": "active"}
    nobody = await shell.run("workers", "drain", "--name", "cellar")
    assert (nobody.code, nobody.out) == (1, "")
    assert nobody.err.startswith("fairlead: No live worker has the name 'cellar'")


async def test_an_unknown_worker_is_reported_as_unknown(shell: Shell) -> None:
    answer = await shell.run("workers", "drain", "nobody")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "fairlead: There is no worker nobody: `fairlead workers list` shows them.\n"


@pytest.mark.parametrize("arguments", [(), ("w", "--name", "studio")])
async def test_it_must_be_clear_which_worker_is_meant(arguments: tuple[str, ...], shell: Shell) -> None:
    answer = await shell.run("workers", "drain", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "give the ids of workers, or --name" in answer.err


@pytest.mark.parametrize("arguments", [*LOOKING, *ACTING, *JOINING], ids=lambda call: " ".join(call[:2]))
async def test_a_missing_server_is_reported(arguments: tuple[str, ...], tmp_path: Path) -> None:
    shell = Shell(tmp_path, ("--engine", "redis://127.0.0.1:1"))
    answer = await shell.run(*arguments)
    assert (answer.code, answer.out) == (3, "")
    assert "did not answer" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("arguments", LOOKING + ACTING, ids=lambda call: " ".join(call[:2]))
async def test_a_namespace_that_was_never_opened_is_named_and_not_made(
    arguments: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    import redis

    shell = Shell(tmp_path, ("--engine", server.url, "--namespace", "never"))
    answer = await shell.run(*arguments)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("fairlead: Namespace 'never' at ")
    assert "or open it with `fairlead up`" in answer.err
    with redis.Redis.from_url(server.url) as client:
        assert client.keys("{fl:never}:*") == []
