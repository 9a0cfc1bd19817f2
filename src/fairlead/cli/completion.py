"""`fairlead --install-completion`: the shell completes commands, options and their values."""

import contextlib
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli import COMPLETE, app
from fairlead.errors import InvalidInput

Shell = Literal["bash", "zsh", "fish"]

#: Added to the script for a shell: where that finds nothing, `fairlead --complete` is asked.
BASH = f"""
_fairlead_values() {{
  _fairlead
  local cur="${{COMP_WORDS[COMP_CWORD]}}" line="${{COMP_LINE:0:COMP_POINT}}"
  [[ ${{#COMPREPLY[@]}} -gt 0 || "$cur" == -* ]] && return
  [[ "$cur" == [:=] ]] && cur=""
  local IFS=$'\\n' word="${{line##* }}"
  COMPREPLY=($(fairlead {COMPLETE} "$line" 2> /dev/null))
  # bash replaces only what comes after a colon or an equals sign
  COMPREPLY=("${{COMPREPLY[@]#"${{word%"$cur"}}"}}")
  [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2> /dev/null
}}

complete -F _fairlead_values fairlead
"""
ZSH = f"""
_cyclopts_fairlead() {{
  local line="${{(j: :)words[1,CURRENT-1]}} $PREFIX"
  _fairlead_words "$@"
  (( compstate[nmatches] )) && return
  local -a found
  found=(${{(f)"$(fairlead {COMPLETE} "$line" 2> /dev/null)"}})
  compadd -a found
}}

_cyclopts_fairlead "$@"
"""
FISH = f"""
function __fairlead_takes_value
    test (count (commandline -opc)) -ge 2; and not string match -q -- '-*' (commandline -ct)
end

complete -c fairlead -n __fairlead_takes_value -f -a '(fairlead {COMPLETE} (commandline -cp) 2> /dev/null)'
"""


def install_completion(
    *,
    shell: Annotated[Shell | None, Parameter(help="Which shell; else the one that runs this.")] = None,
    output: Annotated[
        Path | None, Parameter(help="Write the script there, and leave the shell's own files alone.")
    ] = None,
) -> None:
    """Write the completion script for a shell and have the shell load it."""
    try:
        shell = shell or _detected()
        path = app.install_completion(shell=shell, output=output, add_to_startup=output is None)
        path.write_text(with_values(shell, path.read_text(encoding="utf-8")), encoding="utf-8")
    except OSError as problem:
        raise InvalidInput("--output", f"cannot write {problem.filename}: {problem.strerror}") from None
    print(f"Completion is in {path}. Start a new shell to use it.")


def _detected() -> Shell:
    from cyclopts.completion import ShellDetectionError, detect_shell

    with contextlib.suppress(ShellDetectionError):
        shell = detect_shell()
        if shell != "powershell":
            return shell
    raise InvalidInput("--shell", "cannot tell which shell this is: say bash, zsh or fish")


def with_values(shell: Shell, script: str) -> str:
    """The script for a shell, which also completes what only the server knows."""
    if shell == "zsh":  # its file is a function, which is replaced by the one of its name in it
        return script.replace("_cyclopts_fairlead()", "_fairlead_words()") + ZSH
    return script + (BASH if shell == "bash" else FISH)
