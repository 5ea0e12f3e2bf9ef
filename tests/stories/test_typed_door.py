"""mypy and pyright know the front door: right uses pass, and each wrong one is reported, on its own line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SAMPLE = PROJECT / "tests" / "support" / "typed_door.py"
WRONG = {number for number, line in enumerate(SAMPLE.read_text().splitlines(), 1) if "# wrong:" in line}


def told_by_mypy() -> dict[int, str]:
    cache = PROJECT / ".mypy_cache" / "typed_door"
    options = ["--strict", "--config-file=", "--python-version=3.11", "--no-error-summary", f"--cache-dir={cache}"]
    command = [sys.executable, "-m", "mypy", *options, str(SAMPLE)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"typed_door\.py:(\d+): error: (.*)", done.stdout)
    assert len(found) == done.stdout.count(": error: "), done.stdout
    return {int(line): text for line, text in found}


def told_by_pyright(folder: Path) -> dict[int, str]:
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": [str(SAMPLE)],
        "extraPaths": [str(PROJECT)],
        "reportUnusedExpression": False,  # a >> b is a statement here
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    assert {Path(each["file"]).name for each in found} == {SAMPLE.name}
    return {each["range"]["start"]["line"] + 1: each["message"] for each in found}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_report_what_is_wrong_and_nothing_else(checker: str, tmp_path: Path) -> None:
    told = told_by_mypy() if checker == "mypy" else told_by_pyright(tmp_path)
    assert {line: text for line, text in told.items() if line not in WRONG} == {}, "right, and reported"
    assert WRONG - told.keys() == set(), "wrong, and not reported"
