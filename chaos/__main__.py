"""`python -m chaos [CAMPAIGN ...]`: the long campaigns. Each prints its seed and keeps its figures."""

from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Parameter

from chaos import (
    blocked,
    customers,
    failovers,
    gateway,
    hostile,
    jobs,
    kills,
    model,
    partitions,
    pipeline,
    poison,
    recorder,
    restarts,
    restores,
    shards,
    simulate,
    slots,
    soak,
    zombies,
)
from chaos.options import Options

CAMPAIGNS: dict[str, Callable[[Options], None]] = {
    "model": model.run,
    "kills": kills.run,
    "zombies": zombies.run,
    "blocked": blocked.run,
    "poison": poison.run,
    "restarts": restarts.run,
    "restores": restores.run,
    "partitions": partitions.run,
    "shards": shards.run,
    "failovers": failovers.run,
    "gateway": gateway.run,
    "hostile": hostile.run,
    "jobs": jobs.run,
    "customers": customers.run,
    "pipeline": pipeline.run,
    "simulate": simulate.run,
    "slots": slots.run,
    "recorder": recorder.run,
    "soak": soak.run,
}

app = App(name="chaos", help="Long fault campaigns; the short ones are in the tests.")


@app.default
def main(
    *campaigns: Annotated[str, Parameter(help=f"Which to run, of {', '.join(CAMPAIGNS)}; else all.")],
    options: Annotated[Options | None, Parameter(name="*")] = None,
) -> None:
    unknown = set(campaigns) - CAMPAIGNS.keys()
    if unknown:
        raise SystemExit(f"no campaign {', '.join(sorted(unknown))}: there are {', '.join(CAMPAIGNS)}")
    for name in campaigns or CAMPAIGNS:
        CAMPAIGNS[name](options or Options())


if __name__ == "__main__":
    app()
