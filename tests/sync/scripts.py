"""Scripts as users run them: real processes, in an empty folder, with every warning an error."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import fairlead

ROOT = Path(__file__).parents[2]
SOURCE = Path(fairlead.__file__).parents[1]
SECONDS = 50


@dataclass(frozen=True)
class Scripts:
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def start(self, program: str, *options: str) -> subprocess.Popen[str]:
        # since Python 3.12 every fork of a process with threads is warned of
        warnings = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
        return self.command(sys.executable, *warnings, *options, "-c", program)

    def command(self, *words: str) -> subprocess.Popen[str]:
        usual = {"HOME": str(self.home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        path = os.pathsep.join(map(str, (SOURCE, ROOT, self.home)))
        return subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env={**usual, "PYTHONPATH": path, **self.env},
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
            start_new_session=True,
        )

    def run(self, program: str) -> str:
        """What it prints. It must end with 0, in time, and without a word of complaint."""
        code, out, err = ended(self.start(program))
        assert (code, err) == (0, ""), out + err
        return out


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code and what it printed."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, out, err
