"""A probe in the event loop of `fairlead`: what holds the loop for longer than LEAST_MS is noted in a file.

It is measured in CPU time of the process, so that another process that takes the CPU away does not count, and
divided by the CPU time of a known piece of work done right after it, so that a slow machine does not count.
"""

import os
import time
from pathlib import Path

import msgspec
import uvloop

LEAST_MS = 10.0
EVERY_SECONDS = 0.001
#: Takes about 7 ms to decode on a machine of 2026.
KNOWN = b"[" + b",".join([b"[]"] * 100_000) + b"]"

new_event_loop = uvloop.new_event_loop


def probed_loop() -> uvloop.Loop:
    loop, file = new_event_loop(), Path(os.environ["FAIRLEAD_LAG_FILE"])
    seen = time.process_time()

    def look() -> None:
        """Between two looks the loop has run every callback that was ready once, or slept."""
        nonlocal seen
        held_ms = (time.process_time() - seen) * 1000
        if held_ms >= LEAST_MS:
            began = time.process_time()
            msgspec.json.decode(KNOWN)
            known_ms = (time.process_time() - began) * 1000
            with file.open("a") as lags:
                lags.write(f"{held_ms / known_ms:.1f}\n")
        seen = time.process_time()
        loop.call_later(EVERY_SECONDS, look)

    loop.call_soon(look)
    return loop


def install() -> None:
    uvloop.new_event_loop = probed_loop
