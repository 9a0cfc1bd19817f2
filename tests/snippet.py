"""Runs a piece of code that belongs into an `async def`, as a notebook does: `python snippet.py FILE`.

A program of its own, run by an environment that has only what its page installs.
"""

import ast
import asyncio
import sys
from pathlib import Path
from types import FunctionType


async def main(file: Path) -> None:
    code = compile(file.read_text(), file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if awaited := FunctionType(code, {"__name__": "__main__"})():
        await awaited


if __name__ == "__main__":
    sys.path[0] = ""  # the folder in which it is run
    asyncio.run(main(Path(sys.argv[1])))
