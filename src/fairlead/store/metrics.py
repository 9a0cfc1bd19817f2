"""What is counted since the namespace exists, and what server processes add to it."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.model.metrics import LimitUse, Metrics
from fairlead.model.priority import Priority
from fairlead.store.batches import read_in_pieces
from fairlead.store.connection import pack, text
from fairlead.store.session import Part

#: How many labels each has (`lua/lib/metrics.lua`, `api/tally.py`). The last label may contain colons.
COUNTERS = {
    **{"submitted": 1, "ended": 2, "retries": 2, "failed": 1, "promoted": 2, "workers_lost": 0},
    **{"rejected": 1, "requests": 2},
}
HISTOGRAMS = {"wait": 1, "run": 2, "acquired": 1, "request": 1, "call": 1}
SHARES = (0.5, 0.95, 0.99)  # of the queued tasks, whose ages are shown
MOST_LIMITS = 200  # that are shown separately
NAMES_AT_ONCE = 500

OF_LIMIT = ("kind", "limit", "burst", "used", "waiting", "waiters")
Fields = Mapping[bytes, bytes]


class MetricsPart(Part):
    async def read(self) -> Metrics:
        key = self._connection.keys.key
        hashes = [("HGETALL", key(name)) for name in ("metrics", "acquisitions", "served", "lags")]
        *counted, lags, dead = await self._connection.read(*hashes, ("ZCARD", key("dead")))
        metrics = Metrics(dead_letters=int(dead), lag_seconds=_greatest_lag(lags))
        for fields in counted:
            add_fields(metrics, fields)
        metrics.ages = await self._ages()
        return metrics

    async def _ages(self) -> dict[str, dict[float, float]]:
        rows = (await self._session.run("show_ages", pack(SHARES)))["ages"]
        return {
            priority.word: {share: ms / 1000 for share, ms in zip(SHARES, row, strict=True)}
            for priority, row in zip(Priority, rows, strict=True)
        }

    async def add(self, process: str, counts: Mapping[str, int], lag_ms: int) -> None:
        """Adds what this server process has counted since it did so last."""
        await self._session.run("add_counts", process, pack(dict(counts)), lag_ms)

    async def limits_shown(self) -> tuple[list[LimitUse], int]:
        """The limits that are shown separately, and how many there are: those that are counted first."""
        key = self._connection.keys.key
        counted, some, count = await self._connection.read(
            ("ZRANGEBYSCORE", key("counted"), 0, 0),
            ("ZRANGE", key("limits"), 0, MOST_LIMITS - 1),
            ("ZCARD", key("limits")),
        )
        names = [*dict.fromkeys(map(text, [*counted, *some]))][:MOST_LIMITS]
        return await self._uses(names), int(count)

    async def limits_after(self, name: str) -> list[LimitUse]:
        """The next of all limits, by name."""
        start = f"({name}" if name else "-"
        command = ("ZRANGEBYLEX", self._connection.keys.key("limits"), start, "+", "LIMIT", 0, NAMES_AT_ONCE)
        (names,) = await self._connection.read(command)
        return await self._uses([text(name) for name in names])

    async def _uses(self, names: Sequence[str]) -> list[LimitUse]:
        commands = [("HMGET", self._connection.keys.key("limit", name), *OF_LIMIT) for name in names]
        rows = await read_in_pieces(self._connection, commands)
        return [_use(name, *row) for name, row in zip(names, rows, strict=True) if row[0]]


def add_fields(metrics: Metrics, fields: Fields) -> None:
    for field, value in fields.items():
        name, _, rest = text(field).partition(":")
        base = name.removesuffix("_ms")
        if name in COUNTERS:
            metrics.counters[name][_labels(rest, COUNTERS[name])] += int(value)
        elif name in HISTOGRAMS:
            bucket, _, labels = rest.partition(":")
            metrics.histograms[name][_labels(labels, HISTOGRAMS[name])].buckets[int(bucket)] += int(value)
        elif base in HISTOGRAMS:
            metrics.histograms[base][_labels(rest, HISTOGRAMS[base])].sum_ms += int(value)


def _labels(joined: str, count: int) -> tuple[str, ...]:
    return tuple(joined.split(":", count - 1)) if count else ()


def _use(name: str, kind: Any, limit: Any, burst: Any, used: Any, waiting: Any, waiters: Any) -> LimitUse:
    waits = int(waiting or 0) + int(waiters or 0)
    return LimitUse(name, kind == b"slots", int(limit or burst or 0), int(used or 0), waits)


def _greatest_lag(lags: Fields) -> float:

    return max((int(lag.partition(b":")[0]) for lag in lags.values()), default=0) / 1000
