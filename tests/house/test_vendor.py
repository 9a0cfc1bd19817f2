"""The libraries of the dashboard are those that `scripts/vendor-dashboard` fetched, with their licences."""

import hashlib
import json
import re
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "src/fairlead/dashboard/vendor"
PACKAGES = json.loads((VENDOR / "vendor.json").read_text())


def test_every_file_has_the_hash_in_the_manifest() -> None:
    listed = {name: digest for package in PACKAGES for name, digest in package["files"].items()}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "vendor.json"
    }
    assert found == listed


def test_every_package_has_a_licence_that_allows_it() -> None:
    for package in PACKAGES:
        assert package["license"] in ("MIT", "Apache-2.0", "OFL-1.1"), package["package"]
        assert [name for name in package["files"] if name.endswith(".LICENSE")], package["package"]


def test_browsers_find_what_they_import() -> None:
    imported = re.compile(r"""\b(?:from|import)\s*"([^"]+)";""")
    for path in VENDOR.glob("*.js"):
        for name in imported.findall(path.read_text()):
            assert (VENDOR / name).exists(), f"{path.name} imports {name}"
