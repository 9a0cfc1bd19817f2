"""What a job does in every Python queue: it may wait, then leaves 16 bytes, its number and the time.

Standard library only: it runs in the environment of each queue.
"""

import asyncio
import os
import socket
import struct
import threading
import time
from urllib.parse import urlsplit

URL = os.environ["BENCH_URL"]
CAPACITY = int(os.environ["BENCH_CAPACITY"])  # jobs at a time
LEASE = int(os.environ["BENCH_LEASE"])  # seconds

PUSH = b"*3\r\n$5\r\nRPUSH\r\n$13\r\nbench:records\r\n$16\r\n"

mine = threading.local()


def work(number: int, seconds: float) -> None:
    if seconds:
        time.sleep(seconds)
    record(number)


async def work_async(number: int, seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)
    record(number)


def record(number: int) -> None:
    """One bare command without a reply, so that it costs every queue the same few microseconds."""
    if not hasattr(mine, "server"):
        connect()
    mine.server.sendall(PUSH + struct.pack("<qq", number, time.monotonic_ns()) + b"\r\n")


def connect() -> None:
    at = urlsplit(URL)
    server = socket.create_connection((at.hostname, at.port or 6379))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.sendall(b"CLIENT REPLY OFF\r\n")
    mine.server = server
