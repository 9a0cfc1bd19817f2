"""What a client can do with the handle of a task: wait, watch, cancel; and submit many at once."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from fairlead import Context, Fairlead, NotAllSubmitted, errors
from fairlead.app.handle import TaskHandle
from fairlead.live.messages import Message
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted
from fairlead.store.store import Store
from tests.waiting import wait_until


@pytest.fixture
def fl(new_app: Callable[[], Fairlead]) -> Fairlead:
    fl = new_app()

    @fl.task("echo")
    async def echo(text: str) -> str:
        return text

    @fl.task("fail", max_retries=0)
    async def fail() -> None:
        raise errors.PermanentError("no ink")

    @fl.task("talk")
    async def talk(ctx: Context) -> str:
        """Emits until it is cancelled."""
        for n in range(10_000):
            ctx.emit(n)
            await asyncio.sleep(0.01)
        return "nobody listened"

    return fl


# Waiting


async def test_the_result_is_what_the_handler_returned(fl: Fairlead) -> None:
    async with fl, fl.worker():
        task = await fl.submit("echo", {"text": "hello"})
        assert await task.result(timeout=30) == "hello"
        assert await task.result() == "hello", "it is kept"


async def test_a_failed_task_has_no_result_but_an_error(fl: Fairlead) -> None:
    async with fl, fl.worker():
        task = await fl.submit("fail")
        with pytest.raises(errors.TaskFailed) as failure:
            await task.result(timeout=30)
    error = failure.value
    assert (error.task_id, error.code, error.reason, error.retriable) == (
        task.task_id,
        "permanent_error",
        "no ink",
        False,
    )
    assert str(error) == f"Task {task.task_id} failed (permanent_error): no ink"


async def test_a_task_that_waited_too_long_has_no_result(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"}, max_wait_seconds=0.001)
        await wait_until(lambda: fl.store.promote())
        with pytest.raises(errors.TaskFailed, match="RESOURCE_EXHAUSTED"):
            await task.result(timeout=30)


async def test_a_cancelled_task_has_no_result(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        await task.cancel()
        with pytest.raises(errors.TaskCancelled, match="was cancelled"):
            await task.result(timeout=30)


async def test_a_wait_times_out_but_the_task_continues(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        sentence = f"^Task {task.task_id} has not ended within 0.05 s; it continues.$"
        with pytest.raises(TimeoutError, match=sentence):
            await task.result(timeout=0.05)
        async with fl.worker():
            assert (await task.wait(timeout=30)).status is State.COMPLETED


async def test_many_may_wait_for_one_task(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        waiting = [asyncio.create_task(task.result(timeout=30)) for _ in range(20)]
        async with fl.worker():
            assert await asyncio.gather(*waiting) == ["x"] * 20


async def test_a_task_is_found_again_by_its_id(fl: Fairlead, new_app: Callable[[], Fairlead]) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"}, user_id="ann")
        async with new_app() as elsewhere:
            found = await elsewhere.get(task.task_id)
            assert (found.task_id, found.status, (await found.get()).user_id) == (
                task.task_id,
                State.QUEUED,
                "ann",
            )
            with pytest.raises(errors.UnknownTask):
                await elsewhere.get("00000000-0000-0000-0000-000000000000")


async def test_without_a_connection_the_error_says_how_to_connect(fl: Fairlead) -> None:
    with pytest.raises(errors.FairleadError, match="not connected: do this inside `async with fl:`"):
        await fl.submit("echo", {"text": "x"})
    async with fl:
        with pytest.raises(errors.FairleadError, match="connected already"):
            await fl.__aenter__()


# Watching


async def test_a_watcher_sees_the_state_then_each_change_until_the_end(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        seen: list[Message] = []
        async for message in task.watch():
            seen.append(message)
            if len(seen) == 1:
                working = asyncio.create_task(work_until_ended(fl, task))
        await working
    assert [message["type"] for message in seen] == ["QUEUED", "STEP_START", "JOB_COMPLETE"]
    assert seen[-1]["result"] == "x"


async def work_until_ended(fl: Fairlead, task: TaskHandle[object]) -> None:
    async with fl.worker():
        await task.wait(timeout=30)


async def test_a_late_watcher_gets_the_output_so_far_and_then_the_state(fl: Fairlead) -> None:
    async with fl, fl.worker():
        task = await fl.submit("talk")
        async for message in task.watch():
            if message["type"] == "OUTPUT" and message["chunk"] == 5:
                break
        late: list[Message] = []
        async for message in task.watch():
            late.append(message)
            if message["type"] == "OUTPUT" and message["chunk"] == 20:
                await task.cancel()
    first = [message["type"] for message in late].index("STEP_START")
    assert first >= 6, "earlier output comes first"
    assert late[-1]["type"] == "CANCELLED"
    chunks = [message["chunk"] for message in late if message["type"] == "OUTPUT"]
    assert chunks == list(range(len(chunks))), "each once, in order"


async def test_a_task_that_has_ended_is_watched_to_its_end_at_once(fl: Fairlead) -> None:
    async with fl, fl.worker():
        task = await fl.submit("fail")
        await task.wait(timeout=30)
        seen = [message async for message in task.watch()]
    assert [(message["type"], message["code"]) for message in seen] == [("JOB_FAILED", "permanent_error")]


async def test_a_watcher_resumes_after_a_gap_and_misses_no_output(fl: Fairlead, live_store: Store) -> None:
    chunks: list[int] = []
    lines_cut = 0
    async with fl, fl.worker():
        task = await fl.submit("talk")
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                chunks.append(message["chunk"])
            if len(chunks) == 5 and not lines_cut:
                lines_cut = await live_store.connection.client.client_kill_filter(_type="pubsub")
            if len(chunks) == 100:
                await task.cancel()
    assert lines_cut == 1
    assert chunks == list(range(len(chunks))), "in order, without a hole"


async def test_a_cancelled_watch_leaves_nothing_behind(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        async for _ in task.watch():
            break
        await task.cancel()


# Cancelling


async def test_a_queued_task_is_cancelled_before_it_starts(fl: Fairlead) -> None:
    async with fl:
        task = await fl.submit("echo", {"text": "x"})
        await task.cancel()
        async with fl.worker():
            assert (await (await fl.submit("echo", {"text": "y"})).result(timeout=30)) == "y"
        ended = await task.get()
        assert (ended.status, ended.started_at) == (State.CANCELLED, None)


async def test_a_running_task_is_cancelled_and_its_slot_is_free_again(fl: Fairlead) -> None:
    async with fl, fl.worker(capacity=1):
        task = await fl.submit("talk")
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                await task.cancel()
        assert (await task.get()).status is State.CANCELLED
        assert await (await fl.submit("echo", {"text": "next"})).result(timeout=30) == "next"


async def test_an_ended_task_cannot_be_cancelled(fl: Fairlead) -> None:
    async with fl, fl.worker():
        task = await fl.submit("echo", {"text": "x"})
        await task.result(timeout=30)
        with pytest.raises(errors.AlreadyFinished):
            await task.cancel()


# Submitting


async def test_a_bad_one_among_many_is_answered_with_its_error(fl: Fairlead) -> None:
    good, bad = NewTask(task_type="echo", parameters={"text": "x"}), NewTask(task_type="two words")
    async with fl, fl.worker():
        tasks = [good, bad, NewTask(task_type="fail")]
        first, refused, last = await fl.submit_many(tasks, return_errors=True)
        assert isinstance(refused, errors.InvalidInput) and refused.field == "task_type"
        assert isinstance(first, TaskHandle) and isinstance(last, TaskHandle)
        assert await first.result(timeout=30) == "x"
        assert (await last.wait(timeout=30)).status is State.FAILED


async def test_many_with_bad_ones_raise_a_group_when_all_were_tried(fl: Fairlead) -> None:
    good, bad = NewTask(task_type="echo", parameters={"text": "x"}), NewTask(task_type="two words")
    async with fl, fl.worker():
        with pytest.raises(
            NotAllSubmitted, match=r"^1 of 3 tasks could not be submitted \(0: task_type: use"
        ) as raised:
            await fl.submit_many([bad, good, NewTask(task_type="fail")])
        assert isinstance(raised.value, errors.FairleadError)
        assert [*raised.value.errors] == [0] and raised.value.exceptions == (raised.value.errors[0],)
        assert raised.value.handles[1].task_id == good.task_id
        assert await raised.value.handles[1].result(timeout=30) == "x"
        assert (await raised.value.handles[2].wait(timeout=30)).status is State.FAILED


async def test_the_errors_of_many_can_be_handled_by_kind(fl: Fairlead) -> None:
    caught: list[Exception] = []
    async with fl:
        try:
            await fl.submit_many([NewTask(task_type="two words") for _ in range(5)])
        except* errors.InvalidInput as group:
            caught += group.exceptions
    assert len(caught) == 5


async def test_the_handles_of_many_survive_when_the_store_goes_away(fl: Fairlead) -> None:
    tasks = [NewTask(task_type="echo", parameters={"text": str(n)}) for n in range(1000)]
    async with fl:
        submit, calls = fl.backend.submit, iter(range(5))

        async def submit_twice(*some: NewTask) -> list[Submitted | errors.FairleadError]:
            if next(calls) == 2:
                raise errors.StoreUnavailable()
            return await submit(*some)

        fl.backend.submit = submit_twice  # type: ignore[method-assign]
        with pytest.raises(NotAllSubmitted, match=r"600 of 1000 tasks .* and 597 more\)") as raised:
            await fl.submit_many(tasks)
        assert [*raised.value.handles] == list(range(400))
        assert [*raised.value.errors] == list(range(400, 1000))


async def test_more_than_a_thousand_go_in_several_calls_in_order(fl: Fairlead) -> None:
    tasks = [NewTask(task_type="echo", parameters={"text": str(n)}) for n in range(2500)]
    async with fl:
        handles = await fl.submit_many(tasks)
        assert [getattr(one, "task_id", one) for one in handles] == [one.task_id for one in tasks]
        assert [getattr(one, "queue_position", one) for one in handles] == list(range(1, 2501))
        assert (await fl.store.stats()).queues["medium"].depth == 2500
        assert await fl.submit_many([]) == []


async def test_no_task_of_many_is_submitted_when_one_is_invalid(fl: Fairlead) -> None:
    def made() -> Iterator[NewTask]:
        yield from (NewTask(task_type="echo", parameters={"text": str(n)}) for n in range(600))
        raise errors.InvalidInput("text", "it is not there")

    async with fl:
        with pytest.raises(errors.InvalidInput):
            await fl.submit_many(made())
        assert (await fl.store.stats()).queues["medium"].depth == 0


async def test_a_submit_returns_how_many_tasks_are_ahead(fl: Fairlead) -> None:
    async with fl:
        assert [(await fl.submit("echo", {"text": "x"})).queue_position for _ in range(3)] == [1, 2, 3]
        high = await fl.submit("echo", {"text": "x"}, priority="high")
        assert (high.queue_position, high.status) == (1, State.QUEUED)
        later = await fl.submit("echo", {"text": "x"}, delay_seconds=60)
        assert (later.queue_position, later.status) == (None, State.DELAYED)


async def test_options_that_do_not_fit_are_named(fl: Fairlead) -> None:
    async with fl:
        with pytest.raises(errors.InvalidInput, match="there is no option colour"):
            await fl.submit("echo", {"text": "x"}, colour="red")  # type: ignore[call-arg]
        with pytest.raises(errors.InvalidInput, match="run_at: has no time zone"):
            await fl.submit("echo", {"text": "x"}, run_at=datetime(2030, 1, 1))
        later = await fl.submit("echo", {"text": "x"}, run_at=datetime(2130, 1, 1, tzinfo=UTC))
        assert (await later.get()).run_at == datetime(2130, 1, 1, tzinfo=UTC).timestamp() * 1000


async def test_options_may_be_given_once_for_many_submits(new_app: Callable[[], Fairlead]) -> None:
    fl = new_app()

    @fl.task
    async def greet(user_id: str) -> str:
        return f"hello {user_id}"

    urgent = greet.options(priority="high", user_id="ann", required_capabilities=["voice"])
    async with fl:
        task = await (await urgent.submit("bob")).get()
        assert (task.parameters, task.user_id) == ({"user_id": "bob"}, "ann"), "one name, two things"
        assert (task.priority.word, task.required_capabilities) == ("high", ("voice",))
        low = await (await urgent.submit(user_id="bob", priority="low")).get()
        assert low.priority.word == "low"


async def test_parameters_are_checked_before_they_are_sent(fl: Fairlead) -> None:
    @fl.task
    async def count(to: int) -> int:
        return to

    async with fl:
        with pytest.raises(errors.InvalidInput, match="Expected `int`, got `str`"):
            await count.submit(to="five")  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="missing a required argument: 'to'"):
            await count.submit()  # type: ignore[call-overload]
        assert (await fl.store.stats()).queues["medium"].depth == 0
