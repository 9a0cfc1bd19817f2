"""Submits six calls at once and prints when each was made."""

import asyncio

from app import fl, look_up

CITIES = ["Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito"]


async def main() -> None:
    async with fl:
        tasks = [await look_up.submit(city) for city in CITIES]
        results = [await task.result(timeout=60) for task in tasks]
    for result in results:
        print(f"{result['called_at'] - results[0]['called_at']:.1f} s: {result['city']}")


asyncio.run(main())
