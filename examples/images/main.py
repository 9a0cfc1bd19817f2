"""Three users submit six images each while the GPU is busy; prints who was served in which order."""

import asyncio

from app import draw, fl

USERS = ["fred", "pia", "sam"]


async def main() -> None:
    async with fl:
        async with fl.acquire("gpu", wait=30):  # it is busy until all images wait
            tasks = [
                (user, await draw.submit(f"{user}'s cat", user_id=user)) for user in USERS for _ in range(6)
            ]
        drawn = [((await task.wait(timeout=60)).started_at, user) for user, task in tasks]
    print(" ".join(user for _, user in sorted(drawn)))


asyncio.run(main())
