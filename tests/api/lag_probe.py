"""`fairlead` with a probe in its event loop: what holds the loop for longer than LEAST_MS is noted in a file.

It is measured in CPU time of the process: another process that takes the CPU away does not count.

    FAIRLEAD_LAG_FILE=lags python tests/api/lag_probe.py server --port 0
"""

import os
import time
from pathlib import Path

import uvloop

LEAST_MS = 10.0
EVERY_SECONDS = 0.001

new_event_loop = uvloop.new_event_loop


def probed_loop() -> uvloop.Loop:
    loop, file = new_event_loop(), Path(os.environ["FAIRLEAD_LAG_FILE"])
    seen = time.process_time()

    def look() -> None:
        """Between two looks the loop has run every callback that was ready once, or slept."""
        nonlocal seen
        held_ms = (time.process_time() - seen) * 1000
        if held_ms >= LEAST_MS:
            with file.open("a") as lags:
                lags.write(f"{held_ms:.1f}\n")
        seen = time.process_time()
        loop.call_later(EVERY_SECONDS, look)

    loop.call_soon(look)
    return loop


if __name__ == "__main__":
    uvloop.new_event_loop = probed_loop

    from fairlead.cli import main

    main()
