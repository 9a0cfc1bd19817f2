"""Records of tasks as the server keeps them: what was asked for is one packed field, `facts`."""

from collections.abc import Mapping
from typing import Any

import msgspec

FACTS, TRACEBACK = b"facts", b"traceback"


def read_record(stored: Mapping[bytes, bytes], without: bytes = b"") -> dict[str, Any]:
    """All fields beside each other but for one. A record of an older version has no packed ones."""
    left_out = (FACTS, without)
    fields = {name.decode(): value.decode() for name, value in stored.items() if name not in left_out}
    return read_facts(stored.get(FACTS)) | fields


def read_facts(packed: bytes | None) -> dict[str, Any]:
    return msgspec.msgpack.decode(packed, type=dict[str, Any]) if packed else {}
