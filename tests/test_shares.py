"""How the tests are shared out, and what is booked of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import cpu_times, shares


def test_shares_take_equally_long_and_lack_nothing() -> None:
    files = {f"test_{number}.py": float(number) for number in range(1, 60)}
    found = shares.shares(4, files)
    assert sorted(file for share in found for file in share) == sorted(files)
    first, *others = (sum(files[file] for file in share) for share in found)
    assert max(others) - min(others) <= 2
    assert max(others) - first == pytest.approx(shares.FIRST_HAS_S, abs=2)


def test_every_file_of_tests_is_in_a_share() -> None:
    files = shares.files_of_tests([shares.ROOT / "tests"], {"tests/test_shares.py": 7.5})
    assert files["tests/test_shares.py"] == 7.5
    assert set(files) == {
        path.relative_to(shares.ROOT).as_posix() for path in Path(shares.ROOT, "tests").rglob("test_*.py")
    }
    assert all(seconds > 0 for name, seconds in files.items() if Path(shares.ROOT, name).stat().st_size)


def test_what_parts_took_is_told_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shares, "TIMES", tmp_path / "cache" / "times.json")
    for number in (1, 2):
        booked = {
            "cpu": number * 10.0,
            "files": {f"test_{number}.py": number * 9.0},
            "tests": {f"test_{number}.py::test_x": number * 8.0},
            "seconds": {f"test_{number}.py": number * 7.0},
        }
        (tmp_path / f"{number}.json").write_text(json.dumps(booked))
    cpu_times.tell(tmp_path)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["18.00", "test_2.py"],
        ["9.00", "test_1.py"],
        ["16.00", "test_2.py::test_x"],
        ["8.00", "test_1.py::test_x"],
        ["30.00", "CPU", "seconds", "of", "all", "parts,", "without", "servers", "of", "databases"],
    ]
    assert json.loads(shares.TIMES.read_text()) == {"test_1.py": 7.0, "test_2.py": 14.0}


def test_the_long_files_are_there() -> None:
    files = json.loads(shares.LONG_FILES.read_text())
    assert [name for name in files if not Path(shares.ROOT, name).is_file()] == []
