"""What is installed brings its migrations along."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aaiclick.orchestration.store import schema
from aaiclick.stubs import STUBS

ROOT = Path(__file__).parents[2]
SQL = "from aaiclick.orchestration.store import schema; print(schema.__file__); print(schema.sql('sqlite:///none.db'))"


@pytest.mark.timeout(300)
def test_the_wheel_carries_the_migrations_and_they_run_from_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(tmp_path)]
    subprocess.run(command, check=True, timeout=280)
    (wheel,) = tmp_path.glob("aaiclick-*.whl")
    with zipfile.ZipFile(wheel) as content:
        packed = set(content.namelist())
        content.extractall(tmp_path / "site")
    steps = schema._STEPS
    expected = {str(Path("aaiclick", file.relative_to(ROOT / "aaiclick"))) for file in steps.rglob("*.py")}
    assert len(expected) >= len(schema.REVISIONS) + 2
    assert expected <= packed
    assert {"aaiclick/py.typed", *(path for path, _ in STUBS.values())} <= packed

    search = os.pathsep.join([str(tmp_path / "site"), *sys.path[1:]])
    said = subprocess.run(
        [sys.executable, "-c", SQL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert said.startswith(str(tmp_path / "site"))
    assert "CREATE TABLE jobs" in said
