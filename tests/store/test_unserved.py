"""A task that no live worker can run: the submit says so, and `explain` names what is missing."""

import pytest

from fairlead import errors
from fairlead.model.job import NewStep
from fairlead.model.task import Submitted
from fairlead.settings import TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, job
from tests.store.namespace import new

NO_DRAW = "no worker serves 'draw' yet; it waits until one does"
NO_GPU = "no worker serves 'draw' with the capability 'gpu' yet; it waits until one does"


async def test_a_submit_warns_until_a_worker_serves_the_type(store: Store) -> None:
    assert (await store.submit_one(new("draw"))).warnings == (NO_DRAW,)
    await store.workers.register("w1", task_types=["sing"])
    assert (await store.submit_one(new("draw"))).warnings == (NO_DRAW,)
    await store.workers.register("w2", task_types=["sing", "draw"])
    assert (await store.submit_one(new("draw"))).warnings == ()


async def test_a_worker_without_task_types_serves_all(store: Store) -> None:
    await store.workers.register("w")
    assert (await store.submit_one(new("draw"))).warnings == ()


async def test_a_submit_warns_if_no_worker_has_its_capabilities(store: Store) -> None:
    await store.workers.register("w", task_types=["draw"])
    assert (await store.submit_one(new("draw", required_capabilities=("gpu",)))).warnings == (NO_GPU,)
    await store.declare("code", {"draw": TaskSettings(required_capabilities=["gpu"])}, {})
    assert (await store.submit_one(new("draw"))).warnings == (NO_GPU,)
    await store.workers.register("w", task_types=["draw"], capabilities=["gpu"])
    assert (await store.submit_one(new("draw"))).warnings == ()


@pytest.mark.parametrize("way", ["draining", "gone", "dead"])
async def test_a_worker_that_takes_nothing_more_does_not_count(store: Store, clock: Clock, way: str) -> None:
    await store.workers.register("w")
    match way:
        case "draining":
            await store.workers.drain("w")
        case "gone":
            await store.workers.leave("w")
        case "dead":
            clock.pass_ms(store.settings.worker_ttl_ms + 1)
            await store.upkeep.bury()
    assert (await store.submit_one(new("draw"))).warnings == (NO_DRAW,)


async def test_a_delayed_task_is_warned_about_too(store: Store) -> None:
    assert (await store.submit_one(new("draw", delay_seconds=60))).warnings == (NO_DRAW,)


async def test_each_task_of_a_batch_has_its_own_warnings(store: Store) -> None:
    await store.workers.register("w", task_types=["sing"])
    answers = await store.submit(new("draw"), new("sing"), new("sing", limits={"none": 1}), new("draw"))
    warnings = [one.warnings if isinstance(one, Submitted) else None for one in answers]
    assert warnings == [(NO_DRAW,), (), None, (NO_DRAW,)]
    assert isinstance(answers[2], errors.InvalidInput)


async def test_a_repeated_submit_has_the_warnings_of_the_present(store: Store) -> None:
    by_id, by_key = new("draw"), {"idempotency_key": "k"}
    for _ in range(2):
        assert (await store.submit_one(by_id)).warnings == (NO_DRAW,)
        assert (await store.submit_one(new("draw", **by_key))).warnings == (NO_DRAW,)
    await store.workers.register("w")
    repeated = await store.submit_one(by_id), await store.submit_one(new("draw", **by_key))
    assert [(one.repeated, one.warnings) for one in repeated] == [(True, ()), (True, ())]


async def test_a_job_warns_of_every_step_that_no_worker_serves(store: Store) -> None:
    await store.workers.register("w", task_types=["enhance"])
    await store.declare("code", {"chat": TaskSettings(required_capabilities=["gpu"])}, {})
    wanted = job(ENHANCE, (CHAT, NewStep("llm", "service:llm")), CHAT)
    expected = (
        "no worker serves 'chat' with the capability 'gpu' yet; it waits until one does",
        "no worker serves 'service:llm' yet; it waits until one does",
    )
    for _ in range(2):  # also when it is submitted again
        assert (await store.jobs.submit(wanted)).warnings == expected
    await store.workers.register("all", capabilities=["gpu"])
    assert (await store.jobs.submit(wanted)).warnings == ()
    await store.workers.drain("all")
    await store.jobs.cancel(wanted.job_id)
    assert (await store.jobs.submit(wanted)).warnings == ()  # nothing waits


# Explaining


async def test_a_type_that_no_worker_serves_is_named_with_the_nearest_one(store: Store) -> None:
    await store.workers.register("w", task_types=["render_frame", "sing"])
    waiting = await store.submit_one(new("rendr_frame"))
    explained = await store.explain(waiting.task_id)
    assert explained.sentence == (
        "No live worker serves the task type 'rendr_frame': did you mean 'render_frame'?"
    )
    assert (explained.task_type, explained.type_unserved, explained.similar_type) == (
        "rendr_frame",
        True,
        "render_frame",
    )
    brief = await store.explain(waiting.task_id, brief=True)
    assert (brief.similar_type, brief.queue_position) == (None, 1)


async def test_a_declared_type_is_the_nearest_one_while_its_workers_are_away(store: Store) -> None:
    await store.declare("code", {"render_frame": TaskSettings()}, {})
    misspelled, right = (
        await store.submit_one(new("rendr_frame")),
        await store.submit_one(new("render_frame")),
    )
    assert (await store.explain(misspelled.task_id)).similar_type == "render_frame"
    assert (await store.explain(right.task_id)).sentence == (
        "No live worker serves the task type 'render_frame'."
    )


async def test_capabilities_that_no_worker_of_the_type_has_are_named(store: Store) -> None:
    await store.workers.register("w1", task_types=["draw"], capabilities=["big"])
    await store.workers.register("w2", task_types=["sing"], capabilities=["gpu"])
    waiting = await store.submit_one(new("draw", required_capabilities=("big", "gpu")))
    explained = await store.explain(waiting.task_id)
    assert (explained.type_unserved, explained.missing_capabilities) == (False, ("gpu",))
    assert explained.sentence == "No live worker that serves the task type 'draw' has the capability 'gpu'."
    await store.workers.register("w3", task_types=["draw"], capabilities=["big", "gpu"])
    assert (await store.explain(waiting.task_id)).sentence == "It is next."
