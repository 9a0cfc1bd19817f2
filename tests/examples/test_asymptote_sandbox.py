"""The sandbox of examples/asymptote: the real Asymptote on hostile source, which harms nothing but itself."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path
from subprocess import check_output

import pytest

from examples.asymptote import sandbox
from examples.asymptote.sandbox import (
    MIB,
    MOST_ANSWERED,
    MOST_SAID,
    NOBODY,
    Drawn,
    Kind,
    Limits,
    conversing,
    drawing,
    running,
)
from tests.programs import need_asymptote
from tests.waiting import wait_until

FOLDER = Path(sandbox.__file__).parent
TRIANGLE = "size(200); draw((0,0)--(1,1)--(2,0)--cycle, red+2bp);"
SMALL = Limits(cpu_seconds=5, memory_bytes=256 * MIB, folder_bytes=16 * MIB)
FOREVER = "while(true);"


@pytest.fixture(autouse=True)
def _asymptote() -> None:
    need_asymptote()


async def drawn(source: str, kind: Kind = "svg", limits: Limits = SMALL) -> Drawn:
    async with drawing(kind, limits) as run, asyncio.timeout(30):
        return await run.drawn(source)


async def shell(commands: str) -> str:
    """What a shell within the border says."""
    async with running(SMALL, "sh", "-c", f"exec >&2; {commands}") as run, asyncio.timeout(30):
        return (await run.drawn("")).said


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
async def test_a_picture_is_drawn(kind: Kind, begins: bytes) -> None:
    assert (await drawn(TRIANGLE, kind)).picture.startswith(begins)


async def test_a_label_is_set_by_tex() -> None:
    assert b"<use " in (await drawn('label("$x^2$", (0,0));')).picture


async def test_what_the_source_writes_and_its_mistakes_are_said() -> None:
    assert await drawn('write("hello");') == Drawn(b"", "hello\n", "")
    assert "1.1: no matching variable 'nothing'" in (await drawn("nothing;")).said


@pytest.mark.parametrize(
    ("source", "refusal"),
    [
        ('string[] lines = input("/etc/passwd"); write(lines);', "Read from other directories disabled"),
        ('include "/etc/passwd";', "could not load module"),
        ('write(output("/usr/mine"), "x");', "Write to other directories disabled"),
        ('system("id");', "system() call disabled"),
        ('string[] lines = input("http://127.0.0.1/"); write(lines);', "Couldn't connect"),
        ('string all = "x"; while(true) all += all;', "out of memory"),
        ("real[][] all; while(true) all.push(array(1000000, 0.0));", "out of memory"),
        ('file one = output("one"); while(true) write(one, "xxxxxxxxxxxxxxx");', "File size limit exceeded"),
        ("void again() { again(); again(); } again();", "Stack overflow"),
        ("size(1e7); fill(unitsquare, red);", "shipout failed"),
    ],
)
async def test_hostile_source_is_refused(source: str, refusal: str) -> None:
    had = await drawn(source)
    assert had.picture == b""
    assert refusal in had.said


async def test_endless_output_is_ended() -> None:
    had = await drawn('while(true) write("hello");')
    assert had.stopped == "what it writes is more than 10 kB"
    assert len(had.said) == MOST_SAID


async def test_a_picture_that_is_too_large_is_ended() -> None:
    had = await drawn(
        "size(100); for(int i = 0; i < 3000; ++i) draw((unitrand(),unitrand())--(unitrand(),unitrand()));"
    )
    assert (had.picture, had.stopped) == (b"", "the picture is more than 150 kB")


async def test_an_endless_loop_is_ended_by_the_kernel_and_by_the_caller() -> None:
    had = await drawn(FOREVER, limits=Limits(cpu_seconds=1))
    assert (had.picture, had.stopped) == (b"", "")
    async with drawing("svg", SMALL) as run:
        run.stop("its time was over")
        assert await run.drawn(FOREVER) == Drawn(b"", "", "its time was over")


async def test_what_was_written_before_it_was_ended_is_said() -> None:
    async with drawing("svg", SMALL) as run:
        drawing_it = asyncio.create_task(run.drawn('write("begun"); sleep(60);'))
        await wait_until(lambda: asy_of(os.getpid()) and sleeps(*asy_of(os.getpid())), because="it sleeps")
        run.stop("its time was over")
        assert await drawing_it == Drawn(b"", "begun\n", "its time was over")


async def test_a_conversation_answers_line_by_line_and_survives_mistakes() -> None:
    async with conversing(SMALL) as run, asyncio.timeout(30):
        answers = run.answers()
        for line, answer in [
            ("int x = 5;", None),
            ("write(x + 1);", "6\n"),
            ("nonsense;", "-: 1.1: no matching variable 'nonsense'\n"),
            ("write(\nx);", "5\n"),
            ('write(input("/etc/passwd"));', "Read from other directories disabled"),
            ('write("é");', "é\n"),
        ]:
            await run.tell(line)
            assert answer is None or answer in await anext(answers)
        await run.tell("quit")
        assert [answer async for answer in answers] == []


async def test_lines_with_mistakes_are_left_out_of_a_picture_that_is_drawn_line_by_line() -> None:
    async with drawing("svg", SMALL, line_by_line=True) as run, asyncio.timeout(30):
        had = await run.drawn(f"drow(unitcircle);\n{TRIANGLE}\nquit")
    assert had.picture.startswith(b"<?xml")
    assert "no matching variable" in had.said


async def test_endless_answers_are_ended() -> None:
    async with conversing(SMALL) as run, asyncio.timeout(30):
        await run.tell('while(true) write("hello");')
        said = "".join([answer async for answer in run.answers()])
    assert (len(said) <= MOST_ANSWERED, run.stopped) == (True, "it wrote more than 100 kB")


async def test_safe_is_no_border_so_what_source_starts_is_within_it() -> None:
    """In spite of `-safe`, source runs a program of its choice in the place of TeX."""
    source = r"""
        file script = output("\scrollmode");
        write(script, "{ echo A shell of $(id -u); cat /etc/passwd; } >&2; exit 1");
        close(script);
        settings.texcommand = "/bin/sh";
        label("x", (0,0));
    """
    had = await drawn(source)
    assert f"A shell of {os.geteuid() or NOBODY}\n" in had.said
    assert "/etc/passwd: No such file" in had.said


async def test_a_program_finds_no_files_no_network_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_KEY", "flk_of_the_worker")
    said = await shell(f"ls /home /root /tmp /sys /run /proc/{os.getpid()}")
    assert said.count("No such file or directory") == 6
    assert re.findall(r"(\w+):", await shell("tail -n +3 /proc/net/dev")) == ["lo"]
    environments = await shell("cat /proc/[0-9]*/environ")
    assert "HOME=/work" in environments
    assert "flk_" not in environments


async def test_a_program_writes_to_its_folder_alone_and_not_without_end() -> None:
    places = ["/", "/usr", "/etc", "/dev", "/dev/shm", "/proc/sys/kernel"]
    said = await shell("; ".join(f"touch {place}/mine" for place in places))
    assert said.count("cannot touch") == len(places)
    assert "No space left" in await shell(
        "for i in $(seq 60); do head -c 1000000 /dev/zero > $i || exit; done"
    )


async def test_a_program_can_start_only_a_few() -> None:
    assert "Cannot fork" in await shell("for i in $(seq 20); do sleep 60 & done")


async def test_a_program_cannot_outlive_its_run() -> None:
    async with drawing("svg", SMALL) as run:
        waiting = asyncio.create_task(run.drawn(FOREVER))
        await wait_until(lambda: asy_of(os.getpid()), because="asy runs")
        (asy,) = asy_of(os.getpid())
    await waiting
    await wait_until(lambda: not is_alive(asy), because="asy has ended")


async def test_a_program_cannot_outlive_a_worker_that_is_killed() -> None:
    worker = await create_subprocess_exec(
        *(sys.executable, "-c", WORKER), stdin=PIPE, env={"PYTHONPATH": str(FOLDER), "PATH": "/usr/bin"}
    )
    await wait_until(lambda: asy_of(worker.pid), because="asy runs")
    (asy,) = asy_of(worker.pid)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await wait_until(lambda: not is_alive(asy), because="asy has ended")


WORKER = f"""
import asyncio
from sandbox import Limits, drawing, running

async def work():
    async with drawing("svg", Limits()) as run:
        await run.drawn({FOREVER!r})

asyncio.run(work())
"""


def asy_of(process: int) -> list[int]:
    """Asymptotes that descend from this process."""
    lines = [
        line.split() for line in check_output(["ps", "-eo", "pid,ppid,comm"], text=True).splitlines()[1:]
    ]
    parents = {int(pid): int(parent) for pid, parent, *_ in lines}

    def descends(pid: int) -> bool:
        return pid == process or (pid in parents and descends(parents[pid]))

    return [int(pid) for pid, _, name, *_ in lines if name == "asy" and descends(int(pid))]


def sleeps(pid: int) -> bool:
    return "nanosleep" in Path(f"/proc/{pid}/wchan").read_text()


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
