"""`fairlead --install-completion`: the shell completes commands and options."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli import app
from fairlead.errors import InvalidInput


def install_completion(
    *,
    shell: Annotated[
        Literal["bash", "zsh", "fish"] | None, Parameter(help="Which shell; else the one that runs this.")
    ] = None,
    output: Annotated[
        Path | None, Parameter(help="Write the script there, and leave the shell's own files alone.")
    ] = None,
) -> None:
    """Write the completion script for a shell and have the shell load it."""
    from cyclopts.completion import ShellDetectionError

    try:
        path = app.install_completion(shell=shell, output=output, add_to_startup=output is None)
    except ShellDetectionError:
        raise InvalidInput("--shell", "cannot tell which shell this is: say bash, zsh or fish") from None
    except OSError as problem:
        raise InvalidInput("--output", f"cannot write {problem.filename}: {problem.strerror}") from None
    print(f"Completion is in {path}. Start a new shell to use it.")
