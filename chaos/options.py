"""Options of a campaign."""

import secrets
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter


@dataclass(frozen=True)
class Options:
    seed: Annotated[int, Parameter(help="Repeat a campaign that printed this seed.", show_default=False)] = (
        field(default_factory=lambda: secrets.randbelow(1 << 32))
    )
    full: Annotated[bool, Parameter(help="Ten times the faults.")] = False
    size: Annotated[int | None, Parameter(help="Number of faults.")] = None
    minutes: Annotated[float, Parameter(help="How long the soak takes.")] = 30
    claims: Annotated[int, Parameter(help="Random claims of the model campaign.")] = 200_000
    jobs: Annotated[int, Parameter(help="Processes of the model campaign.")] = 2

    def sized(self, usual: int) -> int:
        return self.size or (usual * 10 if self.full else usual)
