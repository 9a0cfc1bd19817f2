"""The traceback of an error as text: bounded, without values of variables, without credentials."""

import os
import traceback
from pathlib import Path
from types import TracebackType

from fairlead.log.secrets import redacted

MOST_BYTES = 8192  # of a traceback
MOST_FRAMES = 40  # of each error in it; the innermost are kept
HEAD_SHARE = 4  # one part in four of a truncated traceback is from its beginning
OURS = Path(__file__).parents[1]
OUR_FOLDER = str(OURS) + os.sep
DEMO = str(OURS / "cli" / "demo") + os.sep  # its handlers are an app like any other
#: The modules that call handlers. Nothing that a handler itself calls is among them.
CALLERS = frozenset(
    str(OURS / name) for name in ("worker/runner.py", "worker/threads.py", "app/handler_process.py")
)


def traceback_of(problem: BaseException, *, most: int = MOST_BYTES) -> str:
    """The traceback as Python prints it, from the first frame outside Fairlead, in at most `most` bytes."""
    try:
        frames = _frames_of_others(problem.__traceback__)
        summary = traceback.TracebackException(
            type(problem), problem, frames, limit=-MOST_FRAMES, compact=True
        )
        text = "".join(summary.format())
    except Exception:  # printing an error may raise another one; it is reported all the same
        text = f"{type(problem).__name__}: its traceback cannot be printed"
    # the first cut is far larger, so that the second removes what is near it, such as half of a key
    return shortened(redacted(shortened(readable(text.rstrip()), 8 * most)), most)


def is_of_others(problem: BaseException) -> bool:
    """Whether it was raised in code outside Fairlead, or called from there."""
    first = _frames_of_others(problem.__traceback__)
    return first is not None and not _is_ours(first)


def readable(text: str) -> str:
    """Replaces what cannot be encoded: the text of an error may be anything."""
    return text.encode(errors="replace").decode()


def shortened(text: str, most: int) -> str:
    """Cuts the middle out so that `most` bytes are left: the end is what failed, the beginning why."""
    whole = text.encode()
    if len(whole) <= most:
        return text
    mark = f"\n... {len(whole) - most} bytes left out ...\n"
    room = max(0, most - len(mark.encode()) - 8)  # the number in the mark may have another digit
    head, tail = room // HEAD_SHARE, room - room // HEAD_SHARE
    return whole[:head].decode(errors="ignore") + mark + whole[len(whole) - tail :].decode(errors="ignore")


def _frames_of_others(frames: TracebackType | None) -> TracebackType | None:
    """The frames without those of Fairlead and asyncio that lead to a handler; all if there are no others."""
    first = one = frames
    while one:
        if one.tb_frame.f_code.co_filename in CALLERS:
            first = one.tb_next
        one = one.tb_next
    while first and _is_ours(first):
        first = first.tb_next
    return first or frames


def _is_ours(frames: TracebackType) -> bool:
    file = frames.tb_frame.f_code.co_filename
    return file.startswith(OUR_FOLDER) and not file.startswith(DEMO)
