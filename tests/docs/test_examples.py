"""The examples inside the package run as their docstrings say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import warm

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "aaiclick" / "orchestration" / "examples"
PRINTED = {"orchestration_basic": "completed [7, 12]\n"}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__"))
def test_an_example_runs_and_prints_what_it_should(name: str, tmp_path: Path) -> None:
    module = f"aaiclick.orchestration.examples.{name}"
    assert f"python -m {module}" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    done = warm.run(
        [sys.executable, "-m", module],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "AAICLICK_LOCAL_ROOT": str(tmp_path / "root"), "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (PRINTED[name], "", 0)
