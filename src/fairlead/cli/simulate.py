"""`fairlead simulate`: what a trace of work would have waited under these settings."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from fairlead.cli.options import DEFAULTS, OutputOption, StoreOptions
from fairlead.cli.output import print_json, say
from fairlead.cli.table import Table, make_table, print_tables
from fairlead.cli.trace import record_trace
from fairlead.errors import InvalidInput
from fairlead.estimates.foresight import replay_with_estimates
from fairlead.model.measures import Measures, Waits
from fairlead.settings import Settings
from fairlead.settings.loading import read_settings
from fairlead.simulate.plot import draw_waits
from fairlead.simulate.replays import Replay, measure, replay, write_starts
from fairlead.simulate.scenarios import Scenario, scenario
from fairlead.simulate.trace_files import Format, read_trace
from fairlead.simulate.traces import Trace

SLOTS = "worker.capacity"
NOW, WHAT_IF = "now", "what if"
Bar = Callable[[int], None]


def simulate(
    trace: Path | None = None,
    /,
    *,
    record: Annotated[
        Path | None, Parameter(help="Write the work of the past to this CSV file instead, as a trace.")
    ] = None,
    since: Annotated[str, Parameter(help="Of the work to record: 24h, 30min, or a time.")] = "24h",
    slots: Annotated[int | None, Parameter(help="How many tasks run at once; else worker.capacity.")] = None,
    format: Annotated[Format | None, Parameter(help="Of the trace; else by its name, or csv.")] = None,
    what_if: Annotated[
        Sequence[str] | None,
        Parameter(
            help="NAME=VALUE: another value of a setting, a limit or slots, to compare with.", negative=()
        ),
    ] = None,
    estimates: Annotated[
        bool,
        Parameter(
            help="Estimate each wait at the arrival, from what was past by then, and show how true that was. "
            "The estimates come from up to 2,000 forecasts a trace, spread over the arrivals.",
            negative=(),
        ),
    ] = False,
    starts: Annotated[Path | None, Parameter(help="Write when each task started to this CSV file.")] = None,
    plot: Annotated[Path | None, Parameter(help="Write a drawing of the waits to this SVG file.")] = None,
    seed: Annotated[
        int, Parameter(help="Of what is drawn: the run to shorten, if tiers.victim is random.")
    ] = 0,
    output: OutputOption = "table",
    options: StoreOptions = DEFAULTS,
) -> None:
    """Replay a trace of tasks on a virtual clock, and show how long they would wait.

    TRACE is a CSV file with the columns arrival_seconds and duration_seconds and, if known, task_type,
    priority, user_id, tenant, limits (a=1;b=2), capabilities (x;y) and tier; or a log in the Standard
    Workload Format. Either may be gzipped. With --record there is no TRACE: one is written from the history.
    """
    _check_folders({"--starts": starts, "--plot": plot, "--record": record})
    if (trace is None) == (record is None):
        raise InvalidInput("TRACE", "name the trace to replay, or one to write with --record")
    if record:
        record_trace(options.read_settings()[0], record, since)
        return
    assert trace
    before = _settings(options.config, slots, [])
    after = _settings(options.config, slots, what_if) if what_if else None
    read = _read(trace, format)
    scenarios = [scenario(NOW, trace.name, read, before)]
    if after:
        scenarios.append(scenario(WHAT_IF, trace.name, read, after))
    replays = [_play(one, seed, estimates) for one in scenarios]
    measures = {played.scenario.name: measure(played) for played in replays}
    if starts:
        write_starts(replays[0], starts)
    if plot:
        _write(plot, draw_waits(measures))
    if read.left_out:
        say(f"fairlead: left out {read.left_out} jobs that never ran")
    if output == "json":
        _print_json(measures)
    else:
        print_tables(_tables(measures))


def _check_folders(files: Mapping[str, Path | None]) -> None:
    """Before the work, not after it."""
    for option, path in files.items():
        if path and not path.parent.is_dir():
            raise InvalidInput(option, f"cannot write {path}: there is no folder {path.parent}")


def _settings(config: Path | None, slots: int | None, changes: Sequence[str]) -> Settings:
    given = {} if slots is None else {SLOTS: ("--slots", str(slots))}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InvalidInput(
                "--what-if", f"{change!r} is not like limits.gpu=3, slots=4 or promotion.budget=0"
            )
        key = SLOTS if name.strip() == "slots" else name.strip()
        given[key] = (f"--what-if {change}", value)
    return read_settings(config, os.environ, given)[0]


def _read(path: Path, form: Format | None) -> Trace:
    try:
        size = path.stat().st_size
    except OSError as problem:
        raise InvalidInput("TRACE", f"cannot read {path}: {problem.strerror}") from None
    with _bar("reading", size) as progress:
        return read_trace(path, form, progress)


def _play(one: Scenario, seed: int, estimates: bool) -> Replay:
    play = replay_with_estimates if estimates else replay
    with _bar(f"simulating ({one.name})", len(one.trace)) as progress:
        return play(one, seed, progress)


@contextmanager
def _bar(words: str, total: int) -> Iterator[Bar]:
    """A bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        row = progress.add_task(words, total=total)
        yield lambda done: progress.update(row, completed=done)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidInput("--plot", f"cannot write {path}: {problem.strerror}") from None


def _print_json(measures: Mapping[str, Measures]) -> None:
    answer = msgspec.to_builtins(measures[NOW])
    if WHAT_IF in measures:
        answer["what_if"] = msgspec.to_builtins(measures[WHAT_IF])
    print_json(answer)


# Tables


def _tables(measures: Mapping[str, Measures]) -> list[Table]:
    names = list(measures)
    waits = [
        (f"{group}, {name}" if len(names) > 1 else group, *_wait_cells(measures[name].waits[group]))
        for group in measures[NOW].waits
        for name in names
    ]
    rows = FACTS | FITS if measures[NOW].estimates else FACTS
    facts = [(words, *(cell(measures[name]) for name in names)) for words, cell in rows.items()]
    columns = ("wait", "p50", "p95", "p99", "longest", "mean")
    return [make_table(columns, waits), make_table(("of all", *names), facts)]


def _wait_cells(waits: Waits | None) -> Sequence[str]:
    if waits is None:
        return ("", "", "", "", "")
    return tuple(f"{seconds:.1f} s" for seconds in (waits.p50, waits.p95, waits.p99, waits.max, waits.mean))


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


FACTS: dict[str, Callable[[Measures], Any]] = {
    "tasks": lambda one: f"{one.tasks}",
    "never started": lambda one: f"{one.unstarted}",
    "makespan": lambda one: f"{one.makespan_seconds:.0f} s",
    "utilisation": lambda one: f"{one.utilisation:.1%}",
    "mean slowdown": lambda one: _number(one.slowdown.mean if one.slowdown else None),
    "p99 slowdown": lambda one: _number(one.slowdown.p99 if one.slowdown else None),
    "Jain's index": lambda one: _number(one.jain, 3),
    "started promoted": lambda one: f"{one.promoted_share:.1%}",
    "inversions": lambda one: f"{one.inversions} in {one.checks} checks",
}


def _coverage(one: Measures) -> str:
    share = one.estimates.coverage_p90 if one.estimates else None
    return "" if share is None else f"{share:.1%}"


def _error(one: Measures) -> str:
    seconds = one.estimates.median_error_seconds if one.estimates else None
    return "" if seconds is None else f"{seconds:.1f} s"


FITS = {"started within p90": _coverage, "median error of p50": _error}
