"""`fairlead simulate` in this process: what it prints, and what it refuses."""

import csv
import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import run
from fairlead.simulate import traces
from fairlead.simulate.heads import Heads
from fairlead.simulate.trace_files import MOST_LINE, read_trace

TRACE = """\
arrival_seconds,duration_seconds,task_type,priority,user_id,limits
0,10,draw,low,ann,gpu=1
1,20,draw,high,bob,gpu=1
2,5,chat,medium,ann,
2.5,8,draw,low,eve,gpu=1
3,30,draw,medium,bob,
"""
SETTINGS = "[limits]\ngpu = 1\n[worker]\ncapacity = 2\n"

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs the command on a trace in an empty folder with settings."""
    monkeypatch.chdir(tmp_path)
    Path("fairlead.toml").write_text(SETTINGS)

    def say(trace: str | bytes, *options: str, name: str = "trace.csv") -> tuple[int, str, str]:
        Path(name).write_bytes(trace.encode() if isinstance(trace, str) else trace)
        code = run(["simulate", name, *options])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return say


def measured(say: Say, trace: str | bytes = TRACE, *options: str, name: str = "trace.csv") -> Any:
    code, out, err = say(trace, *options, "--output", "json", name=name)
    assert code == 0, err
    return json.loads(out)


def test_a_trace_is_replayed_and_measured(say: Say) -> None:
    found = measured(say)
    # bob's task of high priority waits for ann's on the gpu: 10 - 1; eve's for both: 30 - 2.5
    assert found["waits"]["high"] == {"p50": 9, "p95": 9, "p99": 9, "max": 9, "mean": 9}
    assert found["waits"]["low"] == {"p50": 0, "p95": 27.5, "p99": 27.5, "max": 27.5, "mean": 13.75}
    assert found["waits"]["all"]["mean"] == pytest.approx((0 + 9 + 0 + 27.5 + 4) / 5)
    assert (found["tasks"], found["unstarted"], found["makespan_seconds"]) == (5, 0, 38)
    assert found["utilisation"] == pytest.approx((10 + 20 + 5 + 8 + 30) / (38 * 2))
    slowdowns = {"ann": [1.0, 1.0], "bob": [29 / 20, 34 / 30], "eve": [35.5 / 10]}
    assert found["slowdown"]["mean"] == pytest.approx(sum(map(sum, slowdowns.values())) / 5)
    speeds = [len(one) / sum(one) for one in slowdowns.values()]
    assert found["jain"] == pytest.approx(sum(speeds) ** 2 / (3 * sum(speed**2 for speed in speeds)))
    assert (found["inversions"], found["promoted_share"], found["estimates"]) == (0, 0, None)
    assert found["checks"] > 5


def test_the_starts_are_written_one_row_a_task(say: Say) -> None:
    assert say(TRACE, "--starts", "starts.csv")[0] == 0
    with Path("starts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["index"], row["start_seconds"], row["end_seconds"], row["priority"]) for row in rows] == [
        ("0", "0.000", "10.000", "low"),
        ("1", "10.000", "30.000", "high"),
        ("2", "2.000", "7.000", "medium"),
        ("3", "30.000", "38.000", "low"),
        ("4", "7.000", "37.000", "medium"),
    ]
    assert {(row["estimate_p50_seconds"], row["estimate_p90_seconds"]) for row in rows} == {("", "")}


def test_estimates_are_measured_and_written_with_the_starts(say: Say) -> None:
    many = "arrival_seconds,duration_seconds,limits\n" + "".join(f"{4 * n},9,gpu=1\n" for n in range(12))
    options = ("--estimates", "--what-if", "limits.gpu=2", "--starts", "starts.csv")
    found = measured(say, many, *options)
    assert 0 < found["estimates"]["coverage_p90"] <= 1
    assert 0 < found["estimates"]["median_error_seconds"] < found["waits"]["all"]["max"]
    assert found["what_if"]["estimates"] != found["estimates"]
    with Path("starts.csv").open() as file:
        rows = list(csv.DictReader(file))
    given = [(float(row["estimate_p50_seconds"]), float(row["estimate_p90_seconds"])) for row in rows]
    assert given[0] == (0, 0.05), "it starts at once"
    assert all(0 <= p50 <= p90 for p50, p90 in given)
    waits = [float(row["start_seconds"]) - float(row["arrival_seconds"]) for row in rows]
    late = [wait <= p90 for wait, (_, p90) in zip(waits, given, strict=True) if wait]
    assert found["estimates"]["coverage_p90"] == pytest.approx(sum(late) / len(late))
    table = say(many, *options)[1]
    assert re.search(r"^started within p90 +\d+\.\d%", table, re.MULTILINE)
    assert "started within p90" not in say(many)[1]


def test_what_if_shows_both_side_by_side(say: Say) -> None:
    rate = 'limits.gpu={ rate = "6/min", burst = 1 }'
    rated = measured(say, TRACE, "--slots", "3", "--what-if", rate)
    assert rated["what_if"]["waits"]["low"]["max"] == 20 - 2.5  # one start every 10 s
    found = measured(say, TRACE, "--what-if", "limits.gpu=2", "--what-if", "slots=3")
    assert (found["waits"]["high"]["max"], found["what_if"]["waits"]["high"]["max"]) == (9, 0)
    assert found["what_if"]["utilisation"] == pytest.approx(73 / (37 * 3))
    code, out, _ = say(TRACE, "--what-if", "limits.gpu=2")
    assert code == 0
    assert re.search(r"^high, now +9\.0 s.*\nhigh, what if +0\.0 s", out, re.MULTILINE)
    assert re.search(r"^of all +now +what if$", out, re.MULTILINE)


def test_promotion_counts_only_what_was_promoted_when_it_started(say: Say) -> None:
    options = ("--what-if", "promotion.low_to_medium_seconds=20")
    found = measured(say, TRACE, *options)
    assert (found["promoted_share"], found["what_if"]["promoted_share"]) == (0, pytest.approx(1 / 5))


def test_the_plot_is_an_svg_with_both_variants(say: Say) -> None:
    assert say(TRACE, "--what-if", "limits.gpu=2", "--plot", "waits.svg")[0] == 0
    root = ET.parse("waits.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"high", "medium", "low", "all", "now", "what if"} <= set(texts)
    bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(bars) == 2 + 2 * 4 * 3
    assert "prefers-color-scheme: dark" in Path("waits.svg").read_text()


def test_a_start_that_breaks_the_rule_is_counted(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    first_of = Heads.first_of
    # the engine forgets the best place as long as a worse one has something
    monkeypatch.setattr(Heads, "first_of", lambda self, place, now: first_of(self, 4 - place, now))
    many = "arrival_seconds,duration_seconds,priority\n" + "0,5,low\n0,5,high\n" * 5
    assert measured(say, many)["inversions"] > 0


def test_gzip_and_other_columns_and_an_swf_log_are_read(say: Say) -> None:
    assert measured(say, gzip.compress(TRACE.encode()), name="trace.csv.gz")["tasks"] == 5
    tiers = "arrival_seconds,duration_seconds,capabilities,tenant\r\n5,1,cuda;big,acme\r\n"
    assert measured(say, "﻿" + tiers)["waits"]["medium"]["max"] == 0
    line = "{} {} 0 {} 4 -1 -1 4 -1 -1 1 7 1 3 1 -1 -1 -1\n"
    log = "; Version: 2\n" + line.format(1, 0, 60) + line.format(2, 10, -1) + line.format(3, 20, 30)
    code, out, err = say(log, "--slots", "1", "--output", "json", name="log.swf")
    assert (json.loads(out)["tasks"], json.loads(out)["waits"]["medium"]["max"]) == (2, 40)
    assert (code, err) == (0, "fairlead: left out 1 jobs that never ran\n")


def test_processors_of_an_swf_log_are_units_of_that_limit(say: Say) -> None:
    line = "{} 0 0 60 {} -1 -1 4 -1 -1 1 7 1 3 1 -1 -1 -1\n"
    Path("fairlead.toml").write_text("[limits]\nprocessors = 6\n")
    found = measured(say, line.format(1, 4) + line.format(2, 4), "--slots", "9", name="log.swf")
    assert found["waits"]["all"]["max"] == 60


def test_the_requested_time_of_an_swf_log_is_its_size(tmp_path: Path) -> None:
    line = "{} 0 0 60 4 -1 -1 4 {} -1 1 7 1 3 1 -1 -1 -1\n"
    log = tmp_path / "log.swf"
    log.write_text("".join(line.format(n, wanted) for n, wanted in enumerate((1, 3600, 4096, 5000, -1))))
    kinds = read_trace(log).kinds
    assert [kind.size_hint for kind in kinds] == ["1s", "4096s", "8192s", ""]


def test_sizes_are_learnt_apart(say: Say) -> None:
    rows = [(40 * n, *((1, "small") if n % 2 else (35, "large"))) for n in range(200)]
    begin = "arrival_seconds,duration_seconds,size_hint\n"
    busy = "8000,35,large\n8000,35,large\n8001,1,\n"  # on two slots
    trace = begin + "".join(f"{at},{took},{size}\n" for at, took, size in rows) + busy
    say(trace, "--slots", "2", "--estimates", "--starts", "starts.csv")
    with Path("starts.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["estimate_p50_seconds"]) == pytest.approx(34, rel=0.1)


TIERS = "[worker]\ncapacity = 4\n[tiers]\nfast = { seconds = 3 }\nslow = { seconds = 30, limit = 2 }\n"
ELASTIC = "arrival_seconds,duration_seconds,tier\n0,20,\n1,20,\n2,25,slow\n2,40,slow\n"


def ends(say: Say, *options: str) -> list[str]:
    assert say(ELASTIC, "--starts", "starts.csv", *options)[0] == 0
    with Path("starts.csv").open() as file:
        return [row["end_seconds"] for row in csv.DictReader(file)]


def test_elastic_runs_become_shorter_and_tiers_end_runs(say: Say) -> None:
    Path("fairlead.toml").write_text(TIERS)
    # both elastic runs give back their unit of slow at 2 s, so that they end 3 s after they started
    assert ends(say) == ["3.000", "4.000", "27.000", "32.000"]


def test_the_seed_draws_which_run_becomes_shorter(say: Say) -> None:
    Path("fairlead.toml").write_text(TIERS + 'victim = "random"\n')
    trace = ELASTIC.rsplit("2,", 1)[0]  # one slow task: the other elastic run keeps its 20 s
    drawn = set()
    for seed in range(9):
        assert say(trace, "--starts", "starts.csv", "--seed", str(seed))[0] == 0
        drawn.add(tuple(line.split(",")[3] for line in Path("starts.csv").read_text().splitlines()[1:]))
    assert drawn == {("3.000", "21.000", "27.000"), ("20.000", "4.000", "27.000")}


def test_a_task_that_can_never_start_is_counted_and_has_no_times(say: Say) -> None:
    Path("fairlead.toml").write_text("[limits]\ngpu = 0\n")
    found = measured(say, TRACE, "--starts", "starts.csv")
    assert (found["unstarted"], found["waits"]["high"]) == (3, None)
    assert Path("starts.csv").read_text().splitlines()[1] == "0,0.000,,,low,,"


HEADER = "arrival_seconds,duration_seconds\n"
BAD = {
    "not sorted": (HEADER + "5,1\n4,1\n", "line 3: arrival_seconds: 4 is less than 5 s"),
    "negative": (HEADER + "0,-1\n", "line 2: duration_seconds: -1 is negative"),
    "NaN": (HEADER + "nan,1\n", "line 2: arrival_seconds: nan is not a finite number"),
    "infinite": (HEADER + "0,inf\n", "line 2: duration_seconds: inf is not a finite number"),
    "huge": (HEADER + "0,1e300\n", "line 2: duration_seconds: 1e300 is more than"),
    "no number": (HEADER + "0,x\n", "line 2: duration_seconds: 'x' is not a number"),
    "an empty cell": (HEADER + "0,\n", "line 2: duration_seconds is empty"),
    "a missing column": ("arrival_seconds\n0\n", "line 1: there is no column duration_seconds"),
    "an unknown column": (HEADER[:-1] + ",prioritty\n0,1,low\n", "did you mean priority?"),
    "a column twice": (HEADER[:-1] + ",arrival_seconds\n0,1,2\n", "a column is named twice"),
    "a short row": (HEADER + "0,1\n3\n", "line 3: has 1 columns, the first line has 2"),
    "no rows": (HEADER, "trace.csv: has no tasks"),
    "nothing": ("", "line 1: there is no column arrival_seconds"),
    "a long line": (HEADER + "0" * MOST_LINE + ",1\n", f"line 2: is longer than {MOST_LINE} bytes"),
    "an endless quote": (HEADER + '0,"' + "1\n" * 200_000, "is not CSV: field larger than"),
    "not text": (HEADER.encode() + b"\xff\xfe\x00\n", "line 2: is not UTF-8 text"),
    "junk": (bytes(range(256)) * 100, "line 1"),
    "NUL": (HEADER + "\0,1\n", "line 2"),
    "an unknown priority": (HEADER[:-1] + ",priority\n0,1,urgent\n", "'urgent' is not one of high"),
    "an unknown limit": (HEADER[:-1] + ",limits\n0,1,gpo=1\n", "there is no limit gpo: add it to [limits]"),
    "too many units": (HEADER[:-1] + ",limits\n0,1,gpu=2\n", "2 units are more than all that gpu has"),
    "bad units": (HEADER[:-1] + ",limits\n0,1,gpu=x\n", "'gpu=x' is not like gpu=1"),
    "no units": (HEADER[:-1] + ",limits\n0,1,gpu=0\n", "line 2: limits.gpu"),
    "a limit of a tier": (HEADER[:-1] + ",limits\n0,1,tier:fast=1\n", "is the limit of a tier"),
    "an unknown tier": (HEADER[:-1] + ",tier\n0,1,fast\n", "there is no tier fast: add it to [tiers]"),
    "a bad type": (HEADER[:-1] + ",task_type\n0,1,a b\n", "line 2: task_type: use 1 to 200"),
    "a long user": (HEADER[:-1] + f",user_id\n0,1,{'x' * 201}\n", "user_id: has more than 200 characters"),
}


@pytest.mark.parametrize("flaw", BAD)
def test_a_bad_trace_is_refused_with_one_sentence(flaw: str, say: Say) -> None:
    trace, sentence = BAD[flaw]
    code, out, err = say(trace)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("fairlead: trace.csv") and sentence in err


def test_too_many_rows_or_kinds_are_refused(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_KINDS", 2)
    assert "trace.csv, line 6: task_type: this is more than 2 kinds" in say(TRACE)[2]
    monkeypatch.setattr(traces, "MOST_ROWS", 1)
    assert "trace.csv, line 3: rows: are more than 1" in say(TRACE)[2]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv.gz", b"plain text", "t.csv.gz: is damaged, or is not gzip"),
        ("t.csv.gz", gzip.compress(TRACE.encode() + b"4,1,,,,\n" * 9_000)[:-40], "t.csv.gz: is damaged"),
        ("t.swf", b"1 2 3\n", "t.swf, line 1: has 3 columns, a line of SWF has 18"),
        ("t.swf", b"; only comments\n", "t.swf: has no tasks"),
        ("t.swf", b"1 x 0 60 4 -1 -1 4 -1 -1 1 7 1 3 1 -1 -1 -1\n", "arrival_seconds: 'x' is not a number"),
    ],
)
def test_a_bad_file_is_refused_with_one_sentence(name: str, content: bytes, sentence: str, say: Say) -> None:
    code, out, err = say(content, name=name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--what-if", "slots"], "'slots' is not like limits.gpu=3"),
        (["--what-if", "promotion.budgett=1"], "did you mean promotion.budget"),
        (["--what-if", "slots=0"], "--what-if slots=0"),
        (["--what-if", "limits.gpu=x"], "--what-if limits.gpu=x"),
        (["--slots", "-1"], "--slots"),
        (["--config", "none.toml"], "none.toml"),
        (
            ["--starts", "no/such/folder.csv"],
            "--starts: cannot write no/such/folder.csv: there is no folder no/such",
        ),
        (["--plot", "no/such/folder.svg"], "--plot: cannot write no/such/folder.svg: there is no folder"),
        (["--starts", "."], "--starts: cannot write .: Is a directory"),
        (["--plot", "."], "--plot: cannot write .: Is a directory"),
    ],
)
def test_a_bad_option_is_refused_with_one_sentence(options: list[str], sentence: str, say: Say) -> None:
    code, _, err = say(TRACE, *options)
    assert (code, err.count("\n")) == (2, 1)
    assert sentence in err


def test_a_trace_that_does_not_exist_is_refused(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "nowhere.csv"]) == 2
    assert capsys.readouterr().err == "fairlead: TRACE: cannot read nowhere.csv: No such file or directory\n"
