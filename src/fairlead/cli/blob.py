"""`fairlead blob`: upload and download files of tasks."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from fairlead.app.files import as_blob
from fairlead.cli.options import DEFAULTS, ClientOptions, Options, open_backend
from fairlead.cli.output import compact, print_answer
from fairlead.errors import InvalidInput
from fairlead.model.blob import BlobRef, as_ref
from fairlead.worker.files import opened

app = App(name="blob", help="Upload and download files of tasks.")

CLIENT = ClientOptions()


@app.command
async def put(file: Annotated[Path, Parameter(help="The file.")], /, *, options: Options = DEFAULTS) -> None:
    """Upload a file and print its reference, for the parameters of tasks."""
    async with open_backend(options, join=True) as backend:
        ref = await as_blob(backend, file)
    print_answer(options.output, ref, compact(ref))


@app.command
async def get(
    ref: Annotated[str, Parameter(help="sha256:..., or a whole reference as JSON.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(help="File to write; else stdout.")] = None,
    options: ClientOptions = CLIENT,
) -> None:
    """Download a file."""
    wanted = _reference(ref)
    async with open_backend(options) as backend:
        local = await backend.blobs.fetch(wanted)
    with opened(local) as content:
        if output is None:
            shutil.copyfileobj(content, sys.stdout.buffer)
            return
        try:
            with output.open("wb") as file:
                shutil.copyfileobj(content, file)
        except OSError as problem:
            raise InvalidInput("--output", f"cannot write {output}: {problem.strerror}") from None


def _reference(text: str) -> BlobRef:
    if not text.startswith("{"):
        return as_ref({"blob": text, "size": 0})
    try:
        return as_ref(msgspec.json.decode(text))
    except msgspec.DecodeError as problem:
        raise InvalidInput(
            "blob", f"is not a reference, as `fairlead blob put` prints it: {problem}"
        ) from None
