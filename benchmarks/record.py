"""Figures as JSON, with what makes them mean something (machine, versions, settings), and as a table."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, Outcome
from fairlead.store.scripts import edition


def as_json(scenario: str, outcome: Outcome, *, quick: bool, note: str, load_before: float) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "note": note,
        "machine": machine() | {"load_before": load_before, "load_after": os.getloadavg()[0]},
        "versions": versions(),
        "servers": outcome.servers,
        "repeated": max(len(figure.values) for figure in outcome.figures),
        "figures": [figure.as_json() for figure in outcome.figures],
        "ratios": [asdict(ratio) for ratio in outcome.ratios],
        "checks": [asdict(check) for check in outcome.checks],
        "refused": outcome.refused,
        "notes": outcome.notes,
    }


def machine() -> dict[str, Any]:
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def versions() -> Mapping[str, str]:
    return {
        "fairlead": version("fairlead"),
        "scripts": edition().split("_")[1],  # two results with different ones measured different code
        "python": platform.python_version(),
        "redis-py": version("redis"),
        "hiredis": version("hiredis"),
    }


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def show(console: Console, scenario: str, outcome: Outcome) -> None:
    """A row per case, a column per measure: median, best, spread."""
    measures = {figure.measure: figure.unit for figure in outcome.figures}
    table = Table(title=scenario, caption="median (best) ±spread of the middle half")
    table.add_column("")
    for measure, unit in measures.items():
        table.add_column(f"{measure}\n{unit}", justify="right")
    rows: dict[str, dict[str, Figure]] = {}
    for figure in outcome.figures:
        rows.setdefault(figure.case, {})[figure.measure] = figure
    for case, row in rows.items():
        table.add_row(case, *(_cell(row.get(measure)) for measure in measures))
    console.print(table)
    for ratio in outcome.ratios:
        target = f"target {ratio.target}" if ratio.target else ""
        console.print(
            f"  {ratio.name}: [bold]{ratio.medians:.3g}[/] (best to best {ratio.bests:.3g}) {target}"
        )
    for check in outcome.checks:
        if not check.held:
            console.print(f"  {check.case}: not held: {check.name}. {check.detail}", highlight=False)
    for case, problem in outcome.refused.items():
        console.print(f"  {case}: refused, {problem}", highlight=False)


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if len(figure.values) == 1:
        return _number(figure.median)
    return f"{_number(figure.median)} ({_number(figure.best)}) ±{figure.spread:.0%}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _first_value(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
