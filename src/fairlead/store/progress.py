"""What runs tell while they run: sent in pieces of a bounded size, and read in such."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fairlead.checks import MOST_UNITS, check_task_id, check_whole
from fairlead.errors import FairleadError
from fairlead.model.reports import MOST_CHUNKS, Output, Progress
from fairlead.store.access.api_keys import Connected
from fairlead.store.batches import MOST_BYTES, Batch, run_parts
from fairlead.store.replies import error_or_none

CHUNK = msgspec.json.Decoder(tuple[int, int, msgspec.Raw, int, int])
PIECE = MOST_BYTES // 2  # bytes of chunks; their packing takes some too


async def tell(store: Connected, worker: str, reports: Iterable[Progress]) -> list[FairleadError | None]:
    batch = Batch.of(reports, lambda report: report.packed())
    pieces = [in_pieces(report) for report in batch.accepted]
    every = [piece for some in pieces for piece in some]
    rows = iter(await run_parts(store, every, lambda part: ("progress", worker, part)))
    answers = [[error_or_none(next(rows)) for _ in some] for some in pieces]
    return batch.answers(next(filter(None, of_one), None) for of_one in answers)


async def output_page(
    store: Connected,
    task_id: str,
    after: int = 0,
    *,
    after_event: int = 0,
    most: int = MOST_CHUNKS,
    content: Callable[[msgspec.Raw], Any] = msgspec.json.decode,
) -> tuple[list[Output], bool]:
    """Chunks that are kept, as fit into 1 MiB, and whether there are more; `content` reads a chunk."""
    check_whole("after", after, MOST_UNITS)
    check_whole("after_event", after_event, MOST_UNITS)
    answer = await store.run("outputs", check_task_id(task_id), after, after_event, most)
    rows = [CHUNK.decode(chunk) for chunk in answer["chunks"]]
    return [Output(seq, fence, content(chunk), *rest) for seq, fence, chunk, *rest in rows], answer["more"]


async def all_outputs(store: Connected, task_id: str, after: int, after_event: int) -> list[Output]:
    outputs: list[Output] = []
    more = True
    while more:
        some, more = await output_page(store, task_id, after, after_event=after_event)
        outputs += some
        after = outputs[-1].seq if outputs else after
    return outputs


def in_pieces(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A report of progress, as several when it brings more output than fits into an act."""
    if "chunks" not in report:
        return [report]
    pieces: list[dict[str, Any]] = []
    room = 0
    for i, chunk in enumerate(report["chunks"]):
        room -= (size := len(chunk.encode()))
        if not pieces or room < 0:
            first = {"first": report["first"] + i} if "first" in report else {}
            pieces.append((report if not pieces else _holder(report)) | {"chunks": []} | first)
            room = PIECE - size
        pieces[-1]["chunks"].append(chunk)
    return pieces


def _holder(report: dict[str, Any]) -> dict[str, Any]:
    return {name: report[name] for name in ("id", "fence") if name in report}
