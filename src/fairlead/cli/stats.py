"""`fairlead stats`: what waits, runs and ended recently, in numbers."""

from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_json
from fairlead.cli.table import print_facts, print_table
from fairlead.shapes.stats import StatsAnswer


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
        }
    )
    if answer.lost_events:
        print_facts({"lost events": answer.lost_events})
