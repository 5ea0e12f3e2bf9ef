"""Which databases are used, and where the files are."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aaiclick import backend
from aaiclick.config import reset_settings
from aaiclick.errors import ConfigError

OURS = ("AAICLICK_", "POSTGRES_", "WORKER_", "JOB_")
SetEnv = Callable[..., None]


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SetEnv]:
    """Sets variables and forgets the settings that were read before."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))

    def set_env(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        reset_settings()

    set_env()
    yield set_env
    reset_settings()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_without_settings_everything_is_local_and_under_the_home(env: SetEnv, tmp_path: Path):
    root = tmp_path / ".aaiclick"
    assert backend.get_root() == root
    assert backend.get_db_url() == f"sqlite+aiosqlite:///{root}/local.db"
    assert backend.get_ch_url() == f"chdb://{root}/chdb_data"
    assert backend.is_local()
    assert backend.is_chdb()
    assert backend.is_sqlite()
    assert backend.get_logs_dir() == f"{root}/logs"


def test_the_two_databases_are_chosen_apart(env: SetEnv):
    env(AAICLICK_SQL_URL="postgresql://u:p@db/state")
    assert (backend.is_sqlite(), backend.is_chdb(), backend.is_local()) == (False, True, False)
    env(AAICLICK_CH_URL="clickhouse://u:p@ch:8123/data")
    assert (backend.is_sqlite(), backend.is_chdb(), backend.is_local()) == (False, False, False)
    assert backend.get_ch_url() == "clickhouse://u:p@ch:8123/data"


def test_directories_are_made_for_their_owner_only(env: SetEnv, tmp_path: Path):
    env(AAICLICK_LOCAL_ROOT=str(tmp_path / "deep" / "root"), AAICLICK_LOG_DIR=str(tmp_path / "logs"))
    assert mode_of(backend.ensure_root()) == 0o700
    assert mode_of(Path(backend.get_logs_dir())) == 0o700


def test_a_directory_that_is_there_is_left_as_it_is(env: SetEnv, tmp_path: Path):
    tmp_path.chmod(0o750)
    env(AAICLICK_LOCAL_ROOT=str(tmp_path))
    assert backend.ensure_root() == tmp_path
    assert mode_of(tmp_path) == 0o750


@pytest.mark.parametrize(
    ("setting", "make"), [("AAICLICK_LOCAL_ROOT", backend.ensure_root), ("AAICLICK_LOG_DIR", backend.get_logs_dir)]
)
def test_a_directory_that_cannot_be_made_names_its_setting(
    env: SetEnv, tmp_path: Path, setting: str, make: Callable[[], object]
):
    (tmp_path / "file").write_text("")
    env(**{setting: str(tmp_path / "file" / "below")})
    with pytest.raises(ConfigError, match=f"{setting}=.*file/below cannot be used: .*Not a directory.*Set {setting}"):
        make()


def test_a_directory_that_cannot_be_written_names_its_setting(
    env: SetEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    env(AAICLICK_LOCAL_ROOT=str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests may write everywhere
    with pytest.raises(ConfigError, match=r"AAICLICK_LOCAL_ROOT=.*Permission denied"):
        backend.ensure_root()


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", "/var/log/aaiclick"), ("darwin", "{home}/.aaiclick/logs")]
)
def test_the_logs_of_a_fleet_have_a_place_by_platform(
    env: SetEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, expected: str
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "mkdir", lambda *args, **kwargs: None)
    monkeypatch.setattr(os, "access", lambda *args: True)
    env(AAICLICK_SQL_URL="postgresql://u:p@db/state")
    assert backend.get_logs_dir() == expected.format(home=tmp_path)


def test_the_logs_of_a_fleet_are_where_their_user_may_write(
    env: SetEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "platform", "linux")
    may_write = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith("/var/") and may_write(path, mode))
    env(AAICLICK_SQL_URL="postgresql://u:p@db/state")
    assert backend.get_logs_dir() == f"{tmp_path}/.local/state/aaiclick/logs"


def test_settings_are_read_once(env: SetEnv, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    before = backend.get_root()
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "other"))
    assert backend.get_root() == before
    reset_settings()
    assert backend.get_root() == tmp_path / "other"


def test_asking_where_things_are_loads_nothing_heavy():
    heavy = {"asyncio", "sqlalchemy", "pydantic", "chdb", "clickhouse_connect"}
    code = f"import sys, aaiclick.backend, aaiclick.ids; sys.exit(','.join({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.stderr.strip() == ""
