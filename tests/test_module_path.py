"""The user's modules are looked for last, and the current directory only where nobody has named a place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick import module_path
from aaiclick.module_path import found_instead, our_python, search_in, search_in_current, searched_places, usual_place

EVIL = "import os, sys\nopen(os.environ['MARKS'] + '/' + __name__, 'w').close()\nraise SystemExit('hidden')\n"
HIDDEN = ("json", "typing", "asyncio", "re", "inspect", "logging", "sqlite3", "socket", "msgspec", "sitecustomize")


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(module_path, "_chosen", [])
    return sys.path


def evil(place: Path) -> Path:
    """A directory in which modules are called as Python's own."""
    place.mkdir()
    for name in HIDDEN:
        (place / f"{name}.py").write_text(EVIL)
    return place


def test_a_place_is_searched_last(tmp_path: Path, path: list[str]) -> None:
    search_in(str(tmp_path), str(tmp_path))
    assert path[-1] == str(tmp_path)
    assert path.count(str(tmp_path)) == 1


def test_the_current_directory_is_searched_for_what_is_nowhere(
    tmp_path: Path, path: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    search_in_current("json")
    search_in_current("msgspec")
    assert str(tmp_path) not in path
    search_in_current("no_such_package_anywhere")
    assert path[-1] == str(tmp_path)


def test_where_a_place_is_named_the_current_directory_is_none(
    tmp_path: Path, path: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path)
    search_in(str(tmp_path / "app"))
    search_in_current("no_such_package_anywhere")
    assert str(tmp_path) not in path


def test_a_directory_that_was_deleted_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert usual_place() == ""
    sys.path.insert(0, "")
    assert "" not in searched_places()
    search_in_current("no_such_package_anywhere")


def test_another_module_of_the_same_name(tmp_path: Path) -> None:
    for name in ("json.py", "msgspec.py", "time.py", "flow.py"):
        (tmp_path / name).write_text("")
    sys.path.insert(0, str(tmp_path))
    assert "json" in (found_instead("json", str(tmp_path / "json.py")) or "")
    assert "msgspec" in (found_instead("msgspec", str(tmp_path / "msgspec.py")) or "")
    assert found_instead("time", str(tmp_path / "time.py")) is not None
    assert found_instead("flow", str(tmp_path / "flow.py")) is None


@pytest.mark.parametrize("python", ["-P -m aaiclick", "-m aaiclick", "aaiclick"])
def test_a_command_takes_no_module_of_the_current_directory_for_pythons_own(tmp_path: Path, python: str) -> None:
    """What `python -m` loads before it comes to us is out of our reach; hence -P wherever we start something."""
    here, marks = evil(tmp_path / "here"), tmp_path / "marks"
    marks.mkdir()
    aaiclick = [str(Path(sys.executable).parent / "aaiclick")]
    command = aaiclick if python == "aaiclick" else [sys.executable, *python.split()]
    if python == "aaiclick":
        (here / "__main__.py").write_text(EVIL)
    done = subprocess.run(
        [*command, "setup"],
        cwd=here,
        env=os.environ | {"MARKS": str(marks), "AAICLICK_LOCAL_ROOT": str(tmp_path / "root")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(marks) == []


def test_our_own_processes_leave_out_the_current_directory(tmp_path: Path) -> None:
    said = subprocess.run(
        [*our_python("site")], cwd=tmp_path, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, text=True
    )
    assert "sys.path" in said.stdout
    assert str(tmp_path) not in said.stdout
