"""`fairlead stats`: what waits, runs and ended recently, in numbers."""

from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_json
from fairlead.cli.table import print_facts, print_table
from fairlead.shapes.stats import QualityAnswer, StatsAnswer


async def stats(*, options: Options = DEFAULTS) -> None:
    """Count what waits, runs and ended recently."""
    async with open_backend(options) as backend:
        answer = StatsAnswer.from_value(await backend.stats())
    if options.output == "json":
        print_json(answer)
        return
    print_table(
        ("priority", "queued", "oldest"),
        [
            (priority, queue.depth, f"{queue.oldest_age_seconds:.1f} s")
            for priority, queue in answer.queues.items()
        ],
    )
    workers, ended = answer.workers, answer.throughput
    running = {"running": str(workers.used_capacity)}
    if workers.active is not None:  # else the key is a tenant's, and the workers are not
        counts = ", ".join(f"{getattr(workers, state)} {state}" for state in ("active", "draining", "dead"))
        running = {"running": f"{running['running']} of {workers.total_capacity}", "workers": counts}
    print()
    print_facts(
        {
            "delayed": answer.delayed,
            **running,
            "last minute": ", ".join(
                f"{getattr(ended, f'{state}_last_minute')} {state}"
                for state in ("completed", "failed", "cancelled")
            ),
            **_fit(answer.estimates),
        }
    )
    if answer.history_lag_seconds is not None:
        lag, waiting = answer.history_lag_seconds, answer.unrecorded_events
        print_facts({"history": f"{lag:.1f} s behind, {waiting} events" if waiting else "up to date"})
    if answer.lost_events:
        print_facts({"lost events": answer.lost_events})


def _fit(quality: QualityAnswer) -> dict[str, str]:
    if quality.coverage_p90 is None or quality.median_error_seconds is None:
        return {}  # nothing that waited has started in the last hour
    share = f"{quality.coverage_p90 * 100:.0f} % of {quality.count} started within p90"
    return {"estimates": f"{share}, median error {quality.median_error_seconds:.1f} s"}
