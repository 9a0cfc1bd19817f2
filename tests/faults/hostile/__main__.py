"""`python -m tests.faults.hostile ATTACK HOST PORT SECONDS SHARE KEY`: an attacker with its own process."""

import asyncio
import dataclasses
import json
import os
import sys
import time

from tests.faults.hostile import key_holders, strangers
from tests.faults.hostile.lines import ATTACKS, Target

__all__ = ["key_holders", "strangers"]  # they register their attacks


def main(attack: str, host: str, port: str, seconds: str, share: str, key: str) -> None:
    os.nice(10)  # real attackers have their own machines
    target = Target(host, int(port), key, time.monotonic() + float(seconds))
    asyncio.run(ATTACKS[attack].run(target, float(share)))
    print(json.dumps({name: round(value) for name, value in dataclasses.asdict(target.tally).items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
