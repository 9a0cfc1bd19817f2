"""Records of tasks as the server keeps them: what was asked for is one packed field, `facts`."""

from collections.abc import Mapping
from typing import Any

import msgspec

FACTS = b"facts"


def read_record(stored: Mapping[bytes, bytes]) -> dict[str, Any]:
    """All fields beside each other. A record of an older version has no packed ones."""
    fields = {name.decode(): value.decode() for name, value in stored.items() if name != FACTS}
    return read_facts(stored.get(FACTS)) | fields


def read_facts(packed: bytes | None) -> dict[str, Any]:
    return msgspec.msgpack.decode(packed, type=dict[str, Any]) if packed else {}
