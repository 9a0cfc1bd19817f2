"""Scripts with the blocking API as real processes: how they end, Ctrl-C, and what a fork inherits."""

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.servers import free_port, running
from tests.sync.scripts import Scripts, ended

USE = "from tests.apps.blocking import double, draw, fl, refuse, render\n"

FORK = """
import gc, os, sys
with fl.worker():
    task = double.submit(1)
    assert task.result(timeout=30) == 2
    watch = iter(render.submit(frames=1).watch())
    next(watch)
    child = os.fork()
    if child == 0:
        gc.collect()
        {child}
        gc.collect()
        {leave}
    assert os.waitpid(child, 0)[1] == 0
    print(list(watch)[-1]['type'])
    print("parent", task.result(), double.submit(3).result(timeout=30))
"""
CHILD = 'print("child", task.result(), double.submit(2).result(timeout=30), flush=True)'


@pytest.fixture
def server_away(tmp_path: Path) -> Iterator[Scripts]:
    """Scripts whose server is killed when they have printed something."""
    with running("valkey") as server:
        yield Scripts(tmp_path, {"REDIS_URL": server.url, "KILL": str(server.process.pid)})


@pytest.mark.parametrize("last", ["", "fl.close()", "task.cancel()", "next(iter(task.watch()))"])
def test_a_script_ends_by_itself(scripts: Scripts, last: str) -> None:
    printed = scripts.run(USE + f"task = double.submit(1)\n{last}\nprint(task.task_id)")
    assert re.fullmatch(r"[0-9a-f-]{36}\n", printed)


def test_the_engine_ends_with_the_script(scripts: Scripts) -> None:
    """In order, so that it has written everything, and the next script finds the same data."""
    first = scripts.run(USE + "print(double.submit(1).task_id)")
    log = next(scripts.home.rglob("engine/log")).read_text()
    assert "bye bye" in log
    again = scripts.run(USE + f"print(fl.get({first.strip()!r}).status.value)")
    assert again == "queued\n"


def test_threads_that_still_wait_do_not_keep_a_script_alive(scripts: Scripts) -> None:
    program = """
import threading
waiting = threading.Event()
def wait():
    task = double.submit(1)
    waiting.set()
    task.result()
threading.Thread(target=wait, daemon=True).start()
waiting.wait()
print("done")
"""
    assert scripts.run(USE + program) == "done\n"


def test_threads_that_outlive_the_main_one_still_have_their_connection(scripts: Scripts) -> None:
    program = """
import threading
def late():
    threading.main_thread().join()
    print(double.submit(1).status.value)
threading.Thread(target=late).start()
"""
    assert scripts.run(USE + program) == "queued\n"


def test_a_worker_that_was_never_left_ends_with_the_script(scripts: Scripts) -> None:
    program = "worker = fl.worker()\nworker.__enter__()\nprint(double.submit(1).result(timeout=30))"
    assert scripts.run(USE + program) == "2\n"


def test_the_exit_code_is_that_of_the_script(scripts: Scripts) -> None:
    code, _, err = ended(scripts.start(USE + "double.submit(1)\nraise SystemExit(3)"))
    assert (code, err) == (3, "")
    code, _, err = ended(scripts.start(USE + "with fl.worker():\n    refuse.submit().result(timeout=30)"))
    assert code == 1
    assert err.strip().splitlines()[-1].startswith("fairlead.errors.TaskFailed: ")
    assert "the account is empty" in err and "destroyed" not in err


def test_a_script_ends_although_its_server_has_gone(server_away: Scripts) -> None:
    program = "import os\nprint(double.submit(1).status.value)\nos.kill(int(os.environ['KILL']), 9)"
    code, out, err = ended(server_away.start(USE + program))
    assert (code, out) == (0, "queued\n"), err
    assert "Traceback" not in err and "destroyed" not in err


@pytest.mark.parametrize(
    "wait",
    [
        "double.submit(1).result()",
        "list(double.submit(1).watch())",
        "with fl.acquire('gpu'), fl.acquire('gpu', wait=600): pass",
        "fl.run('doubled', {'number': 1})",
    ],
)
def test_ctrl_c_ends_a_wait(scripts: Scripts, wait: str) -> None:
    program = f"fl.submit('ready')\nprint('connected', flush=True)\n{wait}"
    process = scripts.start(USE + program)
    assert process.stdout and process.stdout.readline() == "connected\n"
    until_it_waits(process)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == -signal.SIGINT
    assert err.strip().splitlines()[-1] == "KeyboardInterrupt", err
    assert "destroyed" not in err and "never awaited" not in err


def test_a_script_continues_after_ctrl_c(scripts: Scripts) -> None:
    program = """
task = double.submit(1)
print("connected", flush=True)
try:
    with fl.acquire("gpu"):
        task.result()
except KeyboardInterrupt:
    with fl.acquire("gpu"):  # the block has freed it
        print(task.get().status.value)
"""
    process = scripts.start(USE + program)
    assert process.stdout and process.stdout.readline() == "connected\n"
    until_it_waits(process)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "queued\n", "")


def until_it_waits(process: subprocess.Popen[str]) -> None:
    """Its main thread sleeps."""
    status = Path(f"/proc/{process.pid}/stat")
    seen = 0
    while seen < 20:
        seen = seen + 1 if status.read_text().rpartition(")")[2].split()[0] == "S" else 0
        assert process.poll() is None, ended(process)


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_forked_child_connects_by_itself_and_the_parent_continues(scripts: Scripts, leave: str) -> None:
    printed = scripts.run(USE + FORK.format(child=CHILD, leave=leave))
    assert printed == "child 2 4\nJOB_COMPLETE\nparent 2 6\n"


def test_a_forked_child_cannot_continue_what_its_parent_has_begun(scripts: Scripts) -> None:
    child = """
        from fairlead import FairleadError
        try:
            next(watch)
        except FairleadError as problem:
            print(problem, flush=True)
"""
    printed = scripts.run(USE + FORK.format(child=child.strip(), leave="sys.exit(0)"))
    assert printed.splitlines()[0].endswith("belongs to the parent: begin it again here.")
    assert printed.splitlines()[-1] == "parent 2 6"


def test_a_lease_remains_with_the_parent_of_a_fork(scripts: Scripts) -> None:
    program = """
import os, sys
from fairlead import LimitFull
with fl.acquire("gpu"):
    child = os.fork()
    if child == 0:
        try:
            fl.acquire("gpu").__enter__()
        except LimitFull:
            print("full", flush=True)
    else:
        assert os.waitpid(child, 0)[1] == 0
        try:
            fl.acquire("gpu").__enter__()
        except LimitFull:
            print("still full", flush=True)
if child:
    with fl.acquire("gpu"):
        print("free")
"""
    assert scripts.run(USE + program) == "full\nstill full\nfree\n"


def test_a_fork_while_threads_use_it_leaves_both_sides_working(scripts: Scripts) -> None:
    program = """
import multiprocessing, threading
def use(count):
    for number in range(count):
        double.submit(number).cancel()
if __name__ == "__main__":
    double.submit(1)
    threads = [threading.Thread(target=use, args=[30]) for _ in range(4)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=use, args=[3]) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    for thread in threads:
        thread.join()
    print([child.exitcode for child in children], double.submit(1).status.value)
"""
    assert scripts.run(USE + program) == "[0, 0, 0, 0] queued\n"


def test_a_child_ends_in_order_although_the_engine_has_gone_with_its_parent(scripts: Scripts) -> None:
    program = """
import os, signal, sys
double.submit(1)
parent = os.getpid()
if os.fork() == 0:
    double.submit(2)
    os.kill(parent, signal.SIGKILL)
    while os.getppid() == parent:
        pass
    sys.exit(0)
signal.pause()
"""
    code, out, err = ended(scripts.start(USE + program))  # until the child has closed the pipes, too
    assert (code, out) == (-signal.SIGKILL, "")
    assert "Traceback" not in err and "destroyed" not in err, err


def test_gunicorn_may_fork_workers_from_a_program_that_is_connected(scripts: Scripts) -> None:
    program = """
import os
from tests.apps.blocking import double

before = double.submit(1)  # in the master

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    double.submit(2)
    return [f"{os.getpid()} {before.get().status.value}".encode()]
"""
    (scripts.home / "web.py").write_text(program)
    address = f"127.0.0.1:{free_port()}"
    options = ("--preload", "--workers", "2", "--bind", address, "--log-level", "error")
    gunicorn = scripts.command("gunicorn", *options, "web:app")
    workers: set[str] = set()
    with httpx.Client(base_url=f"http://{address}", transport=httpx.HTTPTransport(retries=8)) as client:
        while len(workers) < 2:
            worker, status = client.get("/", headers={"Connection": "close"}).text.split()
            assert status == "queued"
            workers.add(worker)
    gunicorn.terminate()
    code, _, err = ended(gunicorn)
    assert (code, err) == (0, ""), err
