"""Whether a client that has disconnected received everything, as far as the kernel knows."""

import asyncio
import socket
import struct
import sys

TCP_INFO_BYTES = 216
ACKNOWLEDGED, NOT_SENT, SENT, SENT_AGAIN = 120, 144, 200, 208  # offsets in Linux' struct tcp_info


def has_unacknowledged(transport: asyncio.BaseTransport) -> bool:
    """True: certainly not everything. Systems other than Linux do not say: then it is False."""
    connection = transport.get_extra_info("socket")
    if sys.platform != "linux" or connection is None:
        return False
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except OSError:  # not TCP, or closed already
        return False
    if len(info) < TCP_INFO_BYTES:  # Linux before 4.19
        return False
    (acknowledged,) = struct.unpack_from("Q", info, ACKNOWLEDGED)
    (not_sent,) = struct.unpack_from("I", info, NOT_SENT)
    sent, sent_again = struct.unpack_from("QQ", info, SENT)
    return bool(not_sent or acknowledged < sent - sent_again)
