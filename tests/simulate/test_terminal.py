"""`fairlead simulate` as a process: the bar on a terminal, and plain output in a pipe."""

from pathlib import Path

from tests.commands import Shell


async def test_a_terminal_shows_a_bar_and_a_pipe_does_not(tmp_path: Path) -> None:
    lines = "".join(f"{number},1\n" for number in range(30_000))
    (tmp_path / "trace.csv").write_text("arrival_seconds,duration_seconds\n" + lines)
    shell = Shell(tmp_path)
    shown = (await shell.on_terminal("simulate", "trace.csv")).out
    assert "reading" in shown and "simulating (now)" in shown
    piped = await shell.run("simulate", "trace.csv")
    assert (piped.code, piped.err) == (0, "")
    assert piped.out.startswith("wait")


async def test_a_bad_trace_ends_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("arrival_seconds,duration_seconds\n0,-1\n")
    ended = await Shell(tmp_path).run("simulate", "trace.csv")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "fairlead: trace.csv, line 2: duration_seconds: -1 is negative\n"
