"""The files of the Lua acts, and what their headers say."""

import re
from functools import cache
from pathlib import Path

import fairlead.store
from fairlead.store.scripts import read_header

LUA = Path(fairlead.store.__file__).parent / "lua"


@cache
def source(name: str) -> str:
    return (LUA / f"{name}.lua").read_text()


@cache
def header(name: str) -> dict[str, tuple[str, ...]]:
    return read_header(source(name))


def names_in_header(name: str) -> set[str]:
    """The words and the names that an act answers with, as its header lists them."""
    listed = re.sub(r"\([^)]*\)", "", " ".join(header(name)["RETURNS"]))  # without explanations
    return set(re.findall(r"\w+", listed))
