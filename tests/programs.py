"""Programs that some tests need and that we do not install."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            _miss(f"no {program}")


def need_browser() -> str:
    """The path of one that Playwright can drive."""
    found = [path for path in map(shutil.which, BROWSERS) if path]
    return found[0] if found else _miss("no Chromium")


def _miss(what: str) -> str:
    if os.environ.get("CI"):
        pytest.fail(f"{what}: install it")
    pytest.skip(f"{what} on this machine")
