"""`python -m benchmarks.live_watchers <address> <updates>`: watches tasks, each over its own WebSocket.

The ids come as one line of JSON. It prints `open`, and after the updates how many ms each of them took.
"""

import asyncio
import json
import sys
import time

from websockets.asyncio.client import ClientConnection, connect

OPENED_AT_ONCE = 50


async def main(address: str, updates: int) -> None:
    ids: list[str] = json.loads(sys.stdin.readline())
    base = address.replace("http", "ws", 1)
    sockets: list[ClientConnection] = []
    for start in range(0, len(ids), OPENED_AT_ONCE):
        some = (connect(f"{base}/ws/{one}", proxy=None) for one in ids[start : start + OPENED_AT_ONCE])
        sockets += await asyncio.gather(*some)
    await asyncio.gather(*(socket.recv() for socket in sockets))  # the state of each
    print("open", flush=True)
    latencies: list[float] = []
    enough = asyncio.Event()

    async def watch(socket: ClientConnection) -> None:
        async for message in socket:
            arrived = time.monotonic_ns()
            latencies.append((arrived - int(json.loads(message)["message"])) / 1e6)
            if len(latencies) == updates:
                enough.set()

    watching = [asyncio.create_task(watch(socket)) for socket in sockets]
    await enough.wait()
    print(json.dumps(latencies))
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    await asyncio.gather(*(socket.close() for socket in sockets))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
