"""The process of one simulation: `python -m fairlead.api.simulation_process PARENT FD`."""

import asyncio
import os
import resource
import sys

import msgspec

from fairlead.background import loop_factory
from fairlead.errors import InvalidInput
from fairlead.simulate.what_if import Question, answer
from fairlead.worker.child_process import become_child
from fairlead.worker.pipe import MessagePipe

NICE = 5  # what serves goes first
MOST_SECONDS, MOST_BYTES = 20, 1 << 30  # of the processor, and of memory


async def simulate(pipe: MessagePipe) -> None:
    question = msgspec.convert(await pipe.receive(), Question)
    try:
        pipe.send({"comparison": answer(question)})
    except InvalidInput as problem:
        pipe.send({"problem": str(problem)})
    await pipe.close()


async def _main() -> None:
    end, _ = become_child()
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    await simulate(await MessagePipe.over(end))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_main())
    sys.exit()
