"""Programs that some tests need and that we do not install."""

import os
import shutil
import subprocess

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


def need_asymptote() -> None:
    """With the border in which its example runs it: some containers allow no namespaces."""
    need("asy", "dvisvgm", "bwrap")
    tried = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True, text=True
    )
    if tried.returncode:
        _miss(f"no namespaces ({tried.stderr.strip()})")


def _miss(what: str) -> str:
    if os.environ.get("CI"):
        pytest.fail(f"{what}: install it")
    pytest.skip(f"{what} on this machine")
