"""Many clients that acquire and release limits over HTTP: a program whose arguments are URL, FILE and COUNT.

Each notes in the file for how long it held units for certain: from the answer until it began to give them
back, or until the end of its lease, counted from its request. A killed client holds them until then.
"""

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import httpx

LEASE = 1.0  # seconds


async def acquire_and_release(http: httpx.AsyncClient, names: list[str], notes: TextIO) -> None:
    while True:
        path = f"/api/v1/limits/{random.choice(names)}/leases"
        sent = time.monotonic()
        answer = await http.post(path, json={"lease_seconds": LEASE, "wait_seconds": 5})
        if answer.status_code == 409:
            continue
        assert answer.status_code == 201, answer.text
        lease, since, most = answer.json()["lease_id"], time.monotonic(), sent + LEASE
        note(notes, "held", path, lease, since, most)
        await asyncio.sleep(random.uniform(0, 0.05))
        if random.random() < 0.1:
            sent = time.monotonic()
            renewed = await http.post(f"{path}/{lease}/renew", json={"lease_seconds": LEASE})
            assert renewed.status_code == 200 or time.monotonic() > most, renewed.text
            if renewed.status_code == 200:
                note(notes, "held", path, lease, since, most := sent + LEASE)
        note(notes, "released", path, lease, since, time.monotonic())
        freed = await http.delete(f"{path}/{lease}")
        assert freed.status_code == 200 or time.monotonic() > most, freed.text


def note(notes: TextIO, *words: Any) -> None:
    """In one write: a line is there whole, or not at all, whenever its writer is killed."""
    notes.write(json.dumps(words) + "\n")
    notes.flush()


def most_at_once(lines: Iterable[str]) -> dict[str, int]:
    """By limit: the largest number of units held at one instant."""
    spans: dict[tuple[str, str], tuple[float, float]] = {}
    for line in lines:
        act, path, lease, since, until = json.loads(line)
        if act == "released" and (path, lease) in spans:
            until = min(until, spans[path, lease][1])
        spans[path, lease] = (since, until)
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for (path, _), (since, until) in spans.items():
        if since < until:
            steps[path.split("/")[4]] += [(since, 1), (until, -1)]
    most: dict[str, int] = {}
    for name, changes in steps.items():
        held = 0
        for _, change in sorted(changes):  # at one instant, ends come before beginnings
            held += change
            most[name] = max(most.get(name, 0), held)
    return most


def run() -> None:
    url, file, count = sys.argv[1:]
    asyncio.run(main(url, Path(file), int(count)))


async def main(url: str, file: Path, count: int) -> None:
    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits) as http:
        names = [one["name"] for one in (await http.get("/api/v1/limits")).json()["limits"]]
        with file.open("a") as notes:
            await asyncio.gather(*(acquire_and_release(http, names, notes) for _ in range(count)))
