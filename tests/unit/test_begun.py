"""The register of what a worker has begun: a task is never both begun and returned."""

import asyncio
import os

import pytest

from fairlead.worker.begun import MOST, Begun, Gate, shared_file


def test_a_begun_task_is_listed_until_it_is_reported() -> None:
    begun = Begun()
    assert begun.add(7)
    assert begun.add(9)
    assert sorted(begun.read() or ()) == [7, 9]
    begun.discard(7)
    assert begun.read() == [9]
    assert begun.add(11)
    assert sorted(begun.read() or ()) == [9, 11], "in the place that became free"


def test_two_processes_see_the_same() -> None:
    fd = shared_file()
    worker, heartbeat = Begun(fd), Begun(fd)
    os.close(fd)
    assert worker.add(1_700_000_000_000_000)
    assert heartbeat.read() == [1_700_000_000_000_000]
    heartbeat.close()
    assert not worker.add(5)


def test_an_old_number_does_not_reopen_a_closed_register() -> None:
    begun = Begun()
    first = begun.close()
    second = begun.close()
    begun.open(first)
    assert not begun.add(7)
    begun.open(second)
    assert begun.add(7)


def test_without_room_it_is_unknown_what_was_begun() -> None:
    begun = Begun()
    for fence in range(1, MOST):
        begun.add(fence)
    assert begun.read() is None


async def test_a_returned_task_is_not_begun() -> None:
    gate = Gate(Begun())
    closing = gate.begun.close()
    waiting = [asyncio.create_task(gate.passes(fence)) for fence in (7, 9)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    gate.resume(closing, [7])
    assert await asyncio.gather(*waiting) == [False, True]
    assert not await gate.passes(7), "however late it comes"


async def test_a_waiting_task_keeps_waiting_while_the_register_is_closed_again() -> None:
    gate = Gate(Begun())
    first = gate.begun.close()
    waiting = asyncio.create_task(gate.passes(7))
    await asyncio.sleep(0)
    second = gate.begun.close()
    gate.resume(first, [])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.resume(second, [7])
    assert not await waiting


def test_a_register_can_be_shared_where_there_is_no_memfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    fd = shared_file()
    assert Begun(fd).add(7)
    assert Begun(fd).read() == [7]
    os.close(fd)
