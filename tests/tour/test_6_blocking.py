"""The tour ends with code that has no event loop: scripts, Flask, Django, notebooks.

`fairlead.sync.Fairlead` is the same API, and its calls block. `docs/frameworks.md` shows it in programs.
"""

from pathlib import Path

import pytest

from fairlead import PermanentError, TaskFailed
from fairlead.sync import Fairlead


def test_a_script_needs_no_event_loop(tmp_path: Path) -> None:
    fl = Fairlead(data=tmp_path)
    fl.limit("till", 1)

    @fl.task(limits={"till": 1})
    def pay(eur: int) -> str:
        if eur > 100:
            raise PermanentError("the account is empty")
        return f"paid {eur} EUR"

    fl.pipeline("purchase", [pay])

    with fl, fl.worker():  # without `with fl:` it connects on first use, and disconnects at exit
        assert pay.submit(5, priority="high").result(timeout=30) == "paid 5 EUR"
        with pytest.raises(TaskFailed, match="the account is empty"):
            pay.submit(1000).result(timeout=30)
        assert [message["type"] for message in pay.submit(7).watch()][-1] == "JOB_COMPLETE"
        with fl.acquire("till", wait=30) as lease:  # a limit without a task
            assert lease.fence > 0
        assert fl.run("purchase", {"eur": 9}, timeout=30)["step_0_pay"]["data"] == "paid 9 EUR"
