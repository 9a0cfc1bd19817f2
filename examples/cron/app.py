"""A report every minute, once however many workers run."""

from datetime import datetime
from pathlib import Path

from fairlead import Fairlead

fl = Fairlead()


@fl.cron("* * * * *", timezone="Europe/Berlin")
def report(tick: datetime) -> None:
    with Path("reports.txt").open("a") as file:
        file.write(f"the report of {tick:%H:%M}\n")
