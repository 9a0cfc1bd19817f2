"""What workers and clients do to tasks that run, beside ending them."""

from typing import Any

import msgspec

from fairlead import errors
from fairlead.checks import check_ms, check_task_id, check_whole, to_json
from fairlead.model.batch import Batch
from fairlead.model.reports import MOST_CHUNK_BYTES, MOST_FRAMES, Frame, Grant, Progress
from fairlead.model.states import State
from fairlead.store import replies
from fairlead.store.batches import in_pieces
from fairlead.store.connection import pack
from fairlead.store.queries import Queries


class Running(Queries):
    async def extend(self, worker: str, grant: Grant, ms: int) -> int:
        """Gives a running task `ms` from now, unless it has more; returns its deadline."""
        check_ms("ms", ms)
        holder = pack(grant.packed())
        return int((await self.run("extend", worker, holder, ms, self.settings.lease_ms))["deadline"])

    async def shortened(self, worker: str, *grants: Grant) -> list[errors.FairleadError | None]:
        """The worker has applied the new deadlines of these runs: what they gave up is free."""
        holders = [grant.packed() for grant in grants]
        rows = await self.run_parts(holders, lambda part: ("shortened", worker, part))
        return [replies.refusal(row) for row in rows]

    async def attach(self, task_id: str, client: str, ms: int) -> None:
        """This client is connected to the interactive task for `ms`; SessionTaken while another one is."""
        await self.run("attach", check_task_id(task_id), client, ms)

    async def send_frame(self, task_id: str, frame: Any) -> int:
        """A frame for the handler of an interactive task; returns its number."""
        packed = to_json("frame", frame, MOST_CHUNK_BYTES)
        return int((await self.run("send_frame", check_task_id(task_id), packed))["seq"])

    async def take_frames(self, worker: str, grant: Grant, after: int = 0) -> list[Frame]:
        """The next frames after this number, in order; those up to it are deleted."""
        check_whole("after", after, MOST_FRAMES)
        rows = (await self.run("take_frames", worker, pack(grant.packed()), after))["frames"]
        return [Frame(row["seq"], msgspec.json.decode(row["frame"])) for row in rows]

    async def progress(self, worker: str, *reports: Progress) -> list[errors.FairleadError | None]:
        """Stores the progress and the output of runs; Fenced where one is no longer the caller's."""
        batch = Batch.of(reports, Progress.packed)
        pieces = [in_pieces(report) for report in batch.accepted]
        every = [piece for some in pieces for piece in some]
        rows = iter(await self.run_parts(every, lambda part: ("progress", worker, part)))
        answers = [[replies.refusal(next(rows)) for _ in some] for some in pieces]
        return batch.answers(next(filter(None, of_one), None) for of_one in answers)

    async def release(self, worker: str, *grants: Grant) -> list[State | errors.FairleadError]:
        """Gives tasks back unrun, to the place they had."""
        holders = [grant.packed() for grant in grants]
        rows = await self.run_parts(holders, lambda part: ("release", worker, part, 0))
        return [replies.state_or_error(row) for row in rows]
