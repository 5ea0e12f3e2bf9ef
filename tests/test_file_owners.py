"""What another user owns or may write is not used, at any door; the error tells the command that mends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.backend import get_logs_dir
from aaiclick.config import reset_settings
from aaiclick.data import data_context
from aaiclick.errors import AaiclickError
from aaiclick.file_owners import fault_around, fault_of
from aaiclick.orchestration import ajob_test, list_jobs
from aaiclick.orchestration.store import schema
from tests.orchestration import sample_flows
from tests.support import warm

OTHER = 4_242
"""A user and a group that this process has nothing to do with."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local root that is there."""
    place = tmp_path / "root"
    for name in ("AAICLICK_SQL_URL", "AAICLICK_CH_URL", "AAICLICK_LOG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(place))
    reset_settings()
    place.mkdir(mode=0o700)
    return place


def aaiclick(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "aaiclick", *arguments]
    return warm.run(command, capture_output=True, text=True, timeout=100, check=False)


def spoil(place: Path, how: str) -> None:
    if how == "owner":
        os.chown(place, OTHER, -1)
    elif how == "group":
        os.chown(place, -1, OTHER)
        place.chmod(0o770)
    else:
        place.chmod(0o757)


FAULTS = {
    "owner": ("it belongs to user 4242, and this process runs as", "chown"),
    "group": ("the group 4242 may write it", "chmod"),
    "all": ("every user can write to it", "chmod"),
}
if os.geteuid() != 0:  # only root can give things away
    FAULTS = {"all": FAULTS["all"]}
WORST = next(iter(FAULTS))


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_what_is_wrong_with_a_place_and_what_mends_it(tmp_path: Path, how: str, kind: str) -> None:
    place = tmp_path / "it's here"
    place.mkdir() if kind == "directory" else place.write_text("")
    asked = place
    if kind == "link":
        asked = tmp_path / "link"
        asked.symlink_to(place)
    assert fault_of(asked) is None
    spoil(place, how)
    fault = fault_of(asked)
    assert fault is not None
    cause, command = FAULTS[how]
    assert fault.cause.startswith(cause)
    assert fault.command.startswith(command)
    warm.run(["/bin/sh", "-c", fault.command], check=True)
    assert fault_of(asked) is None


def test_what_is_not_there_has_no_fault(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "none") is None
    assert fault_around(tmp_path / "none") is None


def test_in_a_directory_like_tmp_nobody_takes_away_what_is_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert fault_around(tmp_path) is not None
    tmp_path.chmod(0o1777)
    assert fault_around(tmp_path) is None
    tmp_path.chmod(0o700)


def test_all_directories_on_the_way_are_looked_at(tmp_path: Path) -> None:
    """Whoever may write one of them puts another tree in its place; also of a place that is made later."""
    place = tmp_path / "open" / "between" / "ours"
    place.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(place)
    (tmp_path / "open").chmod(0o777)
    for asked in (place, place / "later" / "still", link):
        fault = fault_around(asked)
        assert fault is not None
        assert fault == (f"every user can write to the directory {tmp_path}/open", f"chmod o-w {tmp_path}/open")
    (tmp_path / "open").chmod(0o1777)
    assert fault_around(place) is None


def test_a_link_of_another_user_is_a_fault(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert fault_of(link) is None
    if "owner" in FAULTS:
        os.lchown(link, OTHER, -1)
        fault = fault_of(link)
        assert fault is not None
        assert fault.cause.startswith("it is a link of user 4242")
        warm.run(["/bin/sh", "-c", fault.command], check=True)
    assert fault_of(link) is None


async def test_a_root_in_a_directory_that_every_user_may_write_is_refused(root: Path) -> None:
    root.parent.chmod(0o777)
    cause = "every user can write to the directory .* To fix it: chmod o-w"
    with pytest.raises(AaiclickError, match=cause):
        await list_jobs()
    with pytest.raises(AaiclickError, match=cause):
        await schema.upgrade(f"sqlite+aiosqlite:///{root}/local.db")
    with pytest.raises(AaiclickError, match=cause):
        get_logs_dir()
    with pytest.raises(AaiclickError, match=cause):
        async with data_context():
            pass
    root.parent.chmod(0o700)


@pytest.mark.parametrize("how", FAULTS)
async def test_a_root_that_others_own_or_may_write_is_refused_in_python(root: Path, how: str) -> None:
    spoil(root, how)
    cause = FAULTS[how][0]
    with pytest.raises(AaiclickError, match=cause):
        await list_jobs()
    with pytest.raises(AaiclickError, match=cause):
        await ajob_test(sample_flows.pipeline, x=1, y=2)
    with pytest.raises(AaiclickError, match=cause):
        async with data_context():
            pass
    with pytest.raises(AaiclickError, match=cause):
        await schema.upgrade(f"sqlite+aiosqlite:///{root}/local.db")


@pytest.mark.parametrize(
    "typed",
    [
        "job list",
        "worker start",
        "server start --port 0",
        "local start --port 0",
        "setup",
        "background start",
        "data list",
    ],
)
def test_such_a_root_is_refused_by_every_command_in_one_line(root: Path, typed: str) -> None:
    spoil(root, WORST)
    said = aaiclick(*typed.split())
    assert said.returncode != 0
    assert said.stderr.count("\n") == 1, said.stderr
    assert FAULTS[WORST][0] in said.stderr
    assert f"To fix it: {FAULTS[WORST][1]} -R " in said.stderr


@pytest.mark.parametrize("name", ["local.db", "local.db-wal", "local.db-shm"])
async def test_a_database_of_another_user_is_refused(root: Path, name: str) -> None:
    (root / name).touch()
    spoil(root / name, WORST)
    with pytest.raises(AaiclickError, match=rf"{name} cannot be used: {FAULTS[WORST][0]}"):
        await list_jobs()


async def test_a_database_in_a_directory_that_everybody_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("AAICLICK_SQL_URL", f"sqlite+aiosqlite:///{shared}/mine.db")
    reset_settings()
    shared.chmod(0o777)
    with pytest.raises(AaiclickError, match="every user can write to the directory"):
        await list_jobs()
    shared.chmod(0o1777)
    assert await list_jobs() == []


@pytest.mark.parametrize("place", ["chdb_data", "contexts"])
async def test_the_engines_directory_of_another_user_is_refused(root: Path, place: str) -> None:
    (root / place).mkdir(exist_ok=True)
    spoil(root / place, WORST)
    with pytest.raises(AaiclickError, match=FAULTS[WORST][0]):
        async with data_context() as context:
            await context.create_object_from_value([1])
