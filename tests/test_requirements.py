"""The lock of the development set: every file by its hash, no address, and in line with what the project asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = Path(__file__).parents[1]
LOCK = (PROJECT / "requirements" / "dev.lock").read_text()
PIN = re.compile(r"^(\S+)==(\S+)((?: ; [^\\]+)?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M)


def wanted() -> list[Requirement]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *(line for lines in extras.values() for line in lines)]
    found = [Requirement(line) for line in [*lines, *project["build-system"]["requires"]]]
    return [each for each in found if each.name != project["project"]["name"]]


def test_it_holds_pins_with_hashes_and_nothing_else() -> None:
    assert PIN.sub("", LOCK) == "", "run: scripts/lock"


def test_it_has_what_the_project_asks_for() -> None:
    pinned = {canonicalize_name(name): Version(version) for name, version, _, _ in PIN.findall(LOCK)}
    for each in wanted():
        assert each.specifier.contains(pinned[canonicalize_name(each.name)]), f"{each}: run scripts/lock"
