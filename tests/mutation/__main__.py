"""Plants faults in the source, one at a time, and counts those that the tests catch. Not a part of the suite.

    python -m tests.mutation tests/mutation/results/after.json --like tests/mutation/results/before.json

A result is kept as soon as it is known, so a run that was stopped, or whose `--seconds` ended, continues
where it was. `--like` plants the same faults as an earlier run did; one whose line has changed since is
left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import msgspec

from tests.mutation.mutants import Mutant, sample

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SEED = 1
RELEVANT = 8  # files of tests for a fault in Lua
LONGEST_SECONDS = 1200.0  # of the tests of one fault


@dataclass(frozen=True)
class Target:
    """A part of the source, and the tests that are there for it."""

    files: str  # below src/fairlead
    tests: str
    count: int


ONE_SERVER = ' -m "not other_server"'
TARGETS = {
    "lua": Target(
        "store/lua/**/*.lua", "tests/store/test_states.py tests/store/test_hygiene.py" + ONE_SERVER, 60
    ),
    "rules": Target("rules/*.py", "tests/unit/test_rules_*", 20),
    "states": Target(
        "model/states.py", "tests/unit/test_states.py tests/store/test_states.py" + ONE_SERVER, 6
    ),
    "outcome": Target("worker/outcome.py", "tests/unit/test_outcome.py", 14),
    "doctor": Target(
        "store/doctor/*.py", "tests/store/test_planted* tests/store/test_doctor.py" + ONE_SERVER, 30
    ),
    "settings": Target(
        "settings/*.py", "tests/unit/test_settings* tests/pipeline/test_pipeline_settings.py", 20
    ),
}


class Result(msgspec.Struct):
    target: str
    mutant: Mutant
    outcome: str = ""  # caught, survived; empty: not known yet
    seconds: float = 0
    by: str = ""  # the first test that failed, and how


def planned() -> list[Result]:
    """In turns, so that a run that is cut short has some of each target."""
    lists = []
    for name, target in TARGETS.items():
        found = sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "fairlead").glob(target.files))
        lists.append([Result(name, mutant) for mutant in sample(SOURCE, found, SEED, target.count)])
    return [result for result in chain(*zip_longest(*lists)) if result]


def with_fault(mutant: Mutant) -> tuple[str, str] | None:
    """The file it is in by now, with the fault; None when there is no such line, or more than one."""
    suffix = Path(mutant.file).suffix
    elsewhere = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob(f"*{suffix}")]
    files = [mutant.file] if mutant.file in elsewhere else elsewhere
    found = [(file, mutant.planted((SOURCE / file).read_text())) for file in files]
    planted = [(file, text) for file, text in found if text]
    return planted[0] if len(planted) == 1 else None


def tests_for(result: Result) -> str:
    """Those of its target; for an act or a library of acts also the test files that mention it most."""
    tests = TARGETS[result.target].tests
    if result.target != "lua":
        return tests
    word = re.compile(Path(result.mutant.file).stem.rstrip("s").replace("_", "."), re.IGNORECASE)
    texts = {path: path.stem * 9 + path.read_text() for path in (ROOT / "tests/store").glob("test_*.py")}
    most = sorted(texts, key=lambda path: (-len(word.findall(texts[path])), path))[:RELEVANT]
    return f"{' '.join(str(path) for path in most)} {tests}"


def play(result: Result) -> None:
    planted = with_fault(result.mutant)
    assert planted
    began = time.monotonic()
    code, output = run_tests(tests_for(result), dict([planted]))
    failed = [line for line in output.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    assert code in (0, 1, 2, 3), output  # more would mean that no test ran
    result.outcome = "survived" if code == 0 else "caught"
    result.seconds = round(time.monotonic() - began, 1)
    result.by = failed[0].partition(" ")[2][:200] if failed else ""


def run_tests(tests: str, changed: dict[str, str]) -> tuple[int, str]:
    """With a copy of the source in which these files are changed."""
    with tempfile.TemporaryDirectory(prefix="fl-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE, copy)  # with the compiled files: only the changed one is compiled again
        for file, text in changed.items():
            (copy / file).write_text(text)
        # on a busy machine a test may take long: that is no fault
        options = "-x -q -p no:cacheprovider --randomly-seed=1 --hypothesis-seed=1 --timeout=300"
        command = f"exec {sys.executable} -m pytest {options} {tests}"
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": ""}
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return 2, ""
        return done.returncode, done.stdout


def check_healthy(names: list[str]) -> None:
    """Without a fault the tests pass; else each one would count as caught."""
    for name in names:
        code, output = run_tests(TARGETS[name].tests, {})
        assert code == 0, f"{name}: {output}"


def load(path: Path) -> list[Result]:
    return msgspec.json.decode(path.read_bytes(), type=list[Result])


def save(path: Path, results: list[Result]) -> None:
    """One line per fault, so that two runs can be compared."""
    rows = b",\n".join(msgspec.json.encode(result) for result in results)
    path.write_bytes(b"[\n" + rows + b"\n]\n")


def report(results: list[Result]) -> Iterator[str]:
    for name in TARGETS:
        known = [result for result in results if result.target == name and result.outcome]
        caught = sum(result.outcome == "caught" for result in known)
        if known:
            yield f"{name:10} {caught:3} of {len(known):3} caught"
    for result in results:
        if result.outcome == "survived":
            mutant = result.mutant
            change = f"{mutant.old} -> {mutant.new or 'nothing'}"
            yield f"survived: {mutant.file}: {mutant.line.strip()} ({change})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("results", type=Path)
    parser.add_argument("--like", type=Path, help="plant the same faults as this earlier run")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--seconds", type=float, default=900, help="begin no fault after this time")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.results.exists():
        results = load(options.results)
    elif options.like:
        results = [Result(old.target, old.mutant) for old in load(options.like) if old.outcome]
    else:
        results = planned()
    results = [result for result in results if with_fault(result.mutant)]
    save(options.results, results)
    check_healthy(options.targets)
    end = time.monotonic() + options.seconds

    def one(result: Result) -> None:
        if time.monotonic() < end:
            play(result)
            save(options.results, results)
            print(result.outcome, result.target, result.seconds, result.by, flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, [r for r in results if not r.outcome and r.target in options.targets]))
    print("\n".join(report(results)))


if __name__ == "__main__":
    main()
