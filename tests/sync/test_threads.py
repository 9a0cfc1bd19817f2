"""One blocking app in many threads, and blocks that are ended by others."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairlead import FairleadError, LeaseLost
from fairlead.sync import Fairlead
from tests.apps.blocking import double, render, stopped, wait_for_nobody, waiting
from tests.waiting import wait_until

THREADS = 50


def names() -> list[str]:
    return [one.name for one in threading.enumerate()]


def test_fifty_threads_share_one_connection(fl: Fairlead) -> None:
    begin = threading.Barrier(THREADS)

    def use(number: int) -> int:
        begin.wait()
        task = double.submit(number)  # the first use connects, and fifty are the first
        assert next(iter(task.watch()))
        return task.result(timeout=40)

    with ThreadPoolExecutor(THREADS) as threads, fl.worker(capacity=20):
        assert list(threads.map(use, range(THREADS))) == [2 * number for number in range(THREADS)]
        assert names().count("fairlead-sync") == 1
    fl.close()
    assert "fairlead-sync" not in names()


def test_fifty_threads_connect_at_once(fl: Fairlead) -> None:
    begin = threading.Barrier(THREADS)

    def use(number: int) -> str:
        begin.wait()
        return double.submit(number).task_id

    with ThreadPoolExecutor(THREADS) as threads:
        assert len(set(threads.map(use, range(THREADS)))) == THREADS
    assert names().count("fairlead-sync") == 1


def test_a_call_that_waits_while_another_thread_closes_says_so(fl: Fairlead) -> None:
    task = double.submit(1)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(task.result)
        watching = threads.submit(lambda: list(task.watch()))
        # the wait, the watch, and its wait for the next message
        asyncio.run(wait_until(lambda: len(fl._connections[os.getpid()]._calls) == 3))
        fl.close()
        for call in (waiting, watching):
            with pytest.raises(FairleadError, match="closed while this waited"):
                call.result(timeout=30)


def test_a_block_whose_lease_was_released_by_force_is_stopped(fl: Fairlead) -> None:
    with pytest.raises(LeaseLost), fl.acquire("gpu", lease_seconds=3) as lease:
        fl._connected().run(fl._connected().app.backend.limits.force_release, "gpu", lease.lease_id)
        while True:
            time.sleep(0.001)
    with fl.acquire("gpu"):
        pass


def test_a_block_that_ignores_its_lost_lease_raises_it_afterwards(fl: Fairlead) -> None:
    stopped = []
    with pytest.raises(LeaseLost), fl.acquire("gpu", lease_seconds=3) as lease:
        fl._connected().run(fl._connected().app.backend.limits.force_release, "gpu", lease.lease_id)
        try:
            while True:
                time.sleep(0.001)
        except BaseException as problem:
            stopped.append(problem)
    assert stopped


def test_what_an_iterator_leaves_behind_is_cleaned_up(fl: Fairlead) -> None:
    task = render.submit(frames=1)
    watch = iter(task.watch())
    next(watch)
    calls = fl._connected()._calls
    assert len(calls) == 1
    del watch
    asyncio.run(wait_until(lambda: not calls))


def test_a_block_that_waits_for_a_task_is_stopped_with_its_lease(fl: Fairlead) -> None:
    with pytest.raises(LeaseLost), fl.acquire("gpu", lease_seconds=3) as lease:
        fl._connected().run(fl._connected().app.backend.limits.force_release, "gpu", lease.lease_id)
        double.submit(1).result()


def test_a_handler_that_waits_for_a_task_is_stopped_with_its_own(fl: Fairlead) -> None:
    with fl.worker():
        task = wait_for_nobody.submit()
        asyncio.run(wait_until(lambda: task.task_id in waiting, 40))  # sooner it would not be called at all
        task.cancel()
        asyncio.run(wait_until(lambda: task.task_id in stopped, 40))
