"""`fairlead type`: task types are paused and resumed by hand."""

import json

from fairlead.settings import TaskSettings
from fairlead.store.store import Store
from tests.commands import Shell
from tests.store.namespace import new


async def listed(shell: Shell) -> dict[str, bool]:
    answer = json.loads((await shell.run("type", "list", "--output", "json")).out)
    assert all(row["paused"] == (row["paused_at"] is not None) for row in answer["task_types"])
    return {row["task_type"]: row["paused"] for row in answer["task_types"]}


async def test_a_paused_type_does_not_start_until_it_is_resumed(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w")
    await live_store.submit_one(task := new("draw"))
    assert (await shell.run("type", "pause", "draw")).out == "draw is paused\n"
    assert (await live_store.claim("w")).tasks == []
    assert (await live_store.explain(task.task_id)).type_paused
    assert (await shell.run("type", "resume", "draw")).out == "draw is resumed\n"
    assert [claimed.task_id for claimed in (await live_store.claim("w")).tasks] == [task.task_id]
    (resumed, paused) = (await live_store.audit.page()).entries
    assert (paused.act, paused.subject, paused.before, paused.after) == (
        "pause_type",
        "draw",
        {"paused": False},
        {"paused": True},
    )
    assert (resumed.act, resumed.before) == ("resume_type", {"paused": True})


async def test_declared_and_paused_types_are_listed(live_store: Store, shell: Shell) -> None:
    declared = {"draw": TaskSettings(), "service:pictures": TaskSettings()}
    await live_store.declare("file", declared, {})
    await live_store.declare("code", {"draw": TaskSettings()}, {})
    assert await listed(shell) == {"draw": False, "service:pictures": False}
    assert json.loads((await shell.run("type", "pause", "mail", "--output", "json")).out) == {
        "task_type": "mail",
        "paused": True,
    }
    assert await listed(shell) == {"draw": False, "mail": True, "service:pictures": False}
    header, *rows = (await shell.run("type", "list")).out.splitlines()
    assert header.split() == ["task", "type", "paused", "since"]
    assert [row.split()[0] for row in rows if row.split()[1] != "-"] == ["mail"]


async def test_a_name_that_no_type_has_is_refused(live_store: Store, shell: Shell) -> None:
    refused = await shell.run("type", "pause", "a b")
    assert refused.code == 2
    assert "task_type: use 1 to 200 of" in refused.err
    assert await live_store.task_types() == {}
