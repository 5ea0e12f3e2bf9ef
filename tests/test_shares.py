"""How the tests are shared out, and what is booked of them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import cpu_times, shares

pytest_plugins = "pytester"


FILES = {
    "tests/test_one.py": "def test_a(): pass\ndef test_b(): pass",
    "tests/below/conftest.py": "import pytest\n@pytest.fixture\ndef here(): return 1",
    "tests/below/test_two.py": "def test_c(here): assert here == 1",
    "tests/below/test_three.py": "def test_d(here): assert here == 2",
    "tests/test_four.py": "import nothing_of_this_name",
}


@pytest.fixture
def queue(pytester: pytest.Pytester) -> Path:
    for name, text in FILES.items():
        place = pytester.path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    return pytester.path / "queue"


def run(pytester: pytest.Pytester, queue: Path, *names: str) -> pytest.RunResult:
    queue.write_text("".join(f"tests/{name}.py\n" for name in names))
    return pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:asyncio", plugins=[shares.Taking(queue, pytester.path / "tests")]
    )


def test_files_are_run_in_the_order_of_the_queue_with_what_folders_define(
    pytester: pytest.Pytester, queue: Path
) -> None:
    done = run(pytester, queue, "below/test_two", "test_one")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["tests/below/test_two.py .*", "tests/test_one.py ..*"])
    assert (done.ret, queue.read_text()) == (0, "")


def test_what_fails_or_cannot_be_imported_fails_the_run_and_the_rest_runs(
    pytester: pytest.Pytester, queue: Path
) -> None:
    done = run(pytester, queue, "test_four", "below/test_three", "test_one")
    done.assert_outcomes(passed=2, failed=1, errors=1)
    assert done.ret == 1


def test_who_finds_nothing_left_has_not_failed(pytester: pytest.Pytester, queue: Path) -> None:
    assert run(pytester, queue).ret == 0


def test_each_file_is_taken_once(tmp_path: Path) -> None:
    queue, names = tmp_path / "queue", [f"test_{number}.py" for number in range(200)]
    queue.write_text("".join(f"{name}\n" for name in names))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(shares.take, [queue] * 201))
    assert sorted(filter(None, taken)) == sorted(names)
    assert taken.count(None) == 1


def test_the_longest_come_first() -> None:
    assert shares.longest_first({"a": 1.0, "c": 2.0, "b": 2.0}) == ["b", "c", "a"]


def test_every_file_of_tests_is_in_the_queue() -> None:
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
