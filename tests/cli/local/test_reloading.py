"""Which modules have changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from aaiclick.cli.local import reloading as module
from aaiclick.cli.local.reloading import changes_in, check_watched, look_at
from aaiclick.errors import InputError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("flows.py", "deep/er/more.py", "notes.txt", ".git/hook.py", "__pycache__/flows.py"):
        _write(tmp_path / "app" / name)
    _write(tmp_path / "app" / "env" / "pyvenv.cfg")
    _write(tmp_path / "app" / "env" / "lib" / "theirs.py")
    return tmp_path / "app"


def _write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_modules_are_looked_at_and_nothing_else(place: Path) -> None:
    (place / "round").symlink_to(place, target_is_directory=True)
    (place / "gone.py").symlink_to(place / "nothing.py")
    assert sorted(look_at(str(place))) == ["deep/er/more.py", "flows.py"]


def test_a_place_that_is_an_environment_itself_is_looked_at(place: Path) -> None:
    _write(place / "pyvenv.cfg")
    assert "flows.py" in look_at(str(place))


def test_a_place_that_is_gone_has_none(tmp_path: Path) -> None:
    assert look_at(str(tmp_path / "nowhere")) == {}


def test_too_many_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_watched(str(place)) == str(place)
    monkeypatch.setattr(module, "FILES_MAX", 2)
    with pytest.raises(InputError, match=r"--reload: .*2 modules or more.*--app-dir"):
        check_watched(str(place))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda place: _write(place / "flows.py", "x = 1"), ["flows.py"]),
        (lambda place: os.utime(place / "flows.py", ns=(1, 1)), ["flows.py"]),
        (lambda place: _write(place / "new.py"), ["new.py"]),
        (lambda place: (place / "deep" / "er" / "more.py").rename(place / "less.py"), ["deep/er/more.py", "less.py"]),
    ],
)
async def test_what_changes_comes_or_goes_is_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], told: list[str]
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)
    async with asyncio.timeout(60):
        watching = await _begun(place, monkeypatch)
        change(place)
        assert await anext(watching) == told
        _write(place / "flows.py", "and again")
        assert await anext(watching) == ["flows.py"]


async def test_whoever_writes_many_is_let_finish(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [{"a.py": (1, 1)}, {"a.py": (2, 1)}, {"a.py": (2, 1), "b.py": (1, 1)}, {"a.py": (1, 1), "b.py": (1, 1)}]
    given = iter([*looks, looks[-1]])
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0)
    monkeypatch.setattr(module, "look_at", lambda _: next(given))
    assert await anext(changes_in(str(place))) == ["b.py"]


async def _begun(place: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """A watch that has looked once: what changes from now on is told."""
    looked = asyncio.Event()
    loop, real = asyncio.get_running_loop(), look_at

    def look(asked: str) -> module.Seen:
        try:
            return real(asked)
        finally:
            loop.call_soon_threadsafe(looked.set)

    monkeypatch.setattr(module, "look_at", look)
    found: asyncio.Queue[list[str]] = asyncio.Queue()

    async def pass_on() -> None:
        async for files in changes_in(str(place)):
            found.put_nowait(files)

    watching = asyncio.create_task(pass_on())
    await looked.wait()

    async def heard() -> AsyncIterator[list[str]]:
        try:
            while True:
                yield await found.get()
        finally:
            watching.cancel()

    return heard()
