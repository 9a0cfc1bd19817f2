"""CPU work in processes of its own, which are killed when they take too long."""

from fairlead import Fairlead

fl = Fairlead()


@fl.task(run_in="process", timeout=30, max_retries=0)
def count_primes(below: int) -> int:
    sieve = bytearray([1]) * below
    for n in range(2, int(below**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, below, n)))
    return sum(sieve[2:])


@fl.task(run_in="process", timeout=2, max_retries=0)
def spin() -> None:
    while True:
        pass
