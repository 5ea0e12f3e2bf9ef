"""The settings: what is accepted, what is refused, and what is said then."""

import copy
import dataclasses
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aaiclick.config import Settings, reset_settings, settings
from aaiclick.config_docs import BY_NAME, SETTINGS
from aaiclick.errors import ConfigError, ConfigErrors

HOME = "/ada"
PROJECT = Path(__file__).parents[1]
NUMBERS = [setting for setting in SETTINGS if setting.low is not None]


def read(variables: Mapping[str, str] | None = None, /, **more: str) -> Settings:
    return Settings.from_env({"HOME": HOME, **(variables or {}), **more})


def refusal(variables: Mapping[str, str] | None = None, /, **more: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(variables, **more)
    return str(caught.value)


# ---------------------------------------------------------------- defaults


def test_nothing_has_to_be_set():
    found = read()
    assert found.local_root == Path("/ada/.aaiclick")
    assert found.sql_url == "sqlite+aiosqlite:////ada/.aaiclick/local.db"
    assert found.ch_url == "chdb:///ada/.aaiclick/chdb_data"
    assert found.log_dir == Path("/ada/.aaiclick/logs")
    assert found.default_preservation_mode == "none"
    assert (found.beat_every_s, found.session_s) == (10, 30)
    assert (found.task_timeout_s, found.job_timeout_s, found.retries_max) == (None, None, 0)
    assert (found.sql_pool_size, found.sql_max_overflow) == (20, 40)
    assert found.value_bytes_max == 1_000_000
    assert found.machine_id is None


def test_the_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().retries_max = 3  # type: ignore[misc]


def test_the_values_that_the_specification_prints_are_accepted():
    found = read(
        POSTGRES_HOST="localhost",
        POSTGRES_PORT="5432",
        POSTGRES_USER="aaiclick",
        POSTGRES_PASSWORD="secret",
        POSTGRES_DB="aaiclick_orchestration",
        WORKER_HEARTBEAT_INTERVAL="30",
        WORKER_TASK_TIMEOUT="3600",
        WORKER_MAX_RETRIES="3",
        JOB_DEFAULT_TIMEOUT="86400",
    )
    assert found.sql_url == "postgresql+asyncpg://aaiclick:secret@localhost:5432/aaiclick_orchestration"
    assert (found.task_timeout_s, found.retries_max, found.job_timeout_s) == (3600, 3, 86400)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
@pytest.mark.parametrize(
    "value", ["-1", "abc", "", " ", "nan", "inf", "1e400", "1e3", "0x10", "\uff11\uff12", "1_000", "9" * 5000]
)
def test_what_is_no_number_is_refused_with_the_range(setting, value):
    message = refusal({setting.name: value}, **needed_by(setting.name))
    assert message.startswith(f"{setting.name}=")
    assert setting.rule in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_a_number_outside_its_range_is_refused(setting):
    assert setting.rule in refusal({setting.name: f"{setting.high + 1:.0f}"}, **needed_by(setting.name))
    if setting.low > 0:
        assert setting.rule in refusal({setting.name: "0"}, **needed_by(setting.name))


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_both_ends_of_a_range_are_accepted(setting):
    for value in (setting.low, setting.high):
        others = {"AAICLICK_SESSION_SECONDS": "86400"} if setting.name.startswith("WORKER_HEARTBEAT") else {}
        read({setting.name: f"{value:.15g}"}, **needed_by(setting.name), **others)


def needed_by(name: str) -> dict[str, str]:
    needed = {"POSTGRES_PORT": {"POSTGRES_HOST": "db"}, "AAICLICK_REDIS_INGEST": {"AAICLICK_REDIS_URL": "redis://host"}}
    return needed.get(name, {})


def test_streams_are_read_from_a_redis_that_is_set():
    assert "there is no Redis to read from" in refusal({"AAICLICK_REDIS_INGEST": "1"})


@pytest.mark.parametrize("prefix", ["", "a b:", "é:", "x" * 101, "a*"])
def test_a_prefix_of_streams_that_is_refused(prefix):
    assert "up to 100 letters, digits" in refusal({"AAICLICK_REDIS_PREFIX": prefix})


def test_the_prefix_of_streams():
    assert read().redis_prefix == "stream:orchestrator:"
    assert read(AAICLICK_REDIS_PREFIX="{ours}:").redis_prefix == "{ours}:"


def test_blanks_around_a_value_do_not_matter():
    assert read(WORKER_MAX_RETRIES=" 3\n").retries_max == 3


@pytest.mark.parametrize(
    ("given", "beat_and_session"),
    [
        ({"WORKER_HEARTBEAT_INTERVAL": "5"}, (5, 30)),
        ({"WORKER_HEARTBEAT_INTERVAL": "30"}, (30, 90)),
        ({"AAICLICK_SESSION_SECONDS": "60"}, (20, 60)),
        ({"AAICLICK_SESSION_SECONDS": "60", "WORKER_HEARTBEAT_INTERVAL": "30"}, (30, 60)),
    ],
)
def test_heartbeat_and_session_follow_from_each_other(given, beat_and_session):
    found = read(given)
    assert (found.beat_every_s, found.session_s) == beat_and_session


def test_a_heartbeat_longer_than_the_session_is_refused():
    message = refusal(WORKER_HEARTBEAT_INTERVAL="90", AAICLICK_SESSION_SECONDS="60")
    assert message.startswith("WORKER_HEARTBEAT_INTERVAL=90 cannot be used")
    assert "60 s" in message
    assert "AAICLICK_SESSION_SECONDS" in message


# ---------------------------------------------------------------- all together


def test_everything_wrong_is_told_at_once_a_line_each():
    with pytest.raises(ConfigErrors) as caught:
        read(AAICLICK_SQL_URL="", WORKER_MAX_RETRIES="-1", AAICLICK_CH_URL="ftp://x", JOB_DEFAULT_TIMEOUT="0")
    head, *lines = str(caught.value).split("\n")
    assert head == "4 settings cannot be used:"
    assert {line.partition("=")[0] for line in lines} == {
        "AAICLICK_SQL_URL",
        "WORKER_MAX_RETRIES",
        "AAICLICK_CH_URL",
        "JOB_DEFAULT_TIMEOUT",
    }


def test_the_error_survives_a_process_border():
    with pytest.raises(ConfigErrors) as caught:
        read(AAICLICK_SQL_URL="", WORKER_MAX_RETRIES="-1")
    assert str(copy.copy(caught.value)) == str(caught.value)


def unknown_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AAICLICK_") and name not in BY_NAME]:
        monkeypatch.delenv(name)
    for name in ("AAICLICK_SQL_URI", "AAICLICK_ZZ", "OTHER_AAICLICK_X"):
        monkeypatch.setenv(name, "x")
    reset_settings()


def test_an_unknown_variable_is_warned_about_once_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    unknown_variables(monkeypatch)
    with caplog.at_level(logging.WARNING):
        settings()
        settings()
    assert [record.getMessage().strip() for record in caplog.records] == [
        "AAICLICK_SQL_URI is not a setting and is ignored. Did you mean AAICLICK_SQL_URL?",
        "AAICLICK_ZZ is not a setting and is ignored.",
    ]


def test_whoever_handles_that_warning_may_ask_for_a_setting(monkeypatch: pytest.MonkeyPatch):
    """The handler of a run's log does: it once waited there for itself."""
    unknown_variables(monkeypatch)
    asked: list[Settings] = []

    class Asks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            asked.append(settings())

    handler = Asks()
    logging.getLogger("aaiclick").addHandler(handler)
    try:
        found = settings()
    finally:
        logging.getLogger("aaiclick").removeHandler(handler)
    assert asked == [found, found]


@pytest.mark.parametrize("mode", ["FULL", "full", "Full"])
def test_the_preservation_mode_is_accepted_in_either_case(mode):
    assert read(AAICLICK_DEFAULT_PRESERVATION_MODE=mode).default_preservation_mode == "full"


@pytest.mark.parametrize("mode", ["", "some", "NONE|FULL"])
def test_another_preservation_mode_is_refused(mode):
    assert "NONE or FULL" in refusal(AAICLICK_DEFAULT_PRESERVATION_MODE=mode)


# ---------------------------------------------------------------- paths


def test_without_a_home_the_error_names_the_setting_to_use():
    with pytest.raises(ConfigError, match=r"AAICLICK_LOCAL_ROOT=~/.aaiclick cannot be used: HOME is not set.*"):
        Settings.from_env({})
    assert Settings.from_env({"AAICLICK_LOCAL_ROOT": "/data"}).local_root == Path("/data")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("~/x", "/ada/x"), ("~", "/ada"), ("/a/../b", "/b"), ("/mit Leer/zäh", "/mit Leer/zäh")],
)
def test_a_root_may_be_written_in_several_ways(given, expected):
    assert read(AAICLICK_LOCAL_ROOT=given).local_root == Path(expected)


@pytest.mark.parametrize("given", ["", "  ", "~root/x", "a\0b", "a\nb", "\udcff", "a\u202eb"])
@pytest.mark.parametrize("name", ["AAICLICK_LOCAL_ROOT", "AAICLICK_LOG_DIR"])
def test_a_directory_that_cannot_be_one_is_refused(name, given):
    message = refusal({name: given})
    assert message.startswith(f"{name}=")
    assert message.isprintable()


def test_a_relative_path_does_not_move_with_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = read(AAICLICK_LOCAL_ROOT="state", AAICLICK_SQL_URL="sqlite:///x.db", AAICLICK_CH_URL="chdb://data")
    assert found.local_root == tmp_path / "state"
    assert found.sqlite_file == tmp_path / "x.db"
    assert found.ch_url == f"chdb://{tmp_path}/data"


def test_a_deleted_current_directory_matters_only_to_relative_paths(tmp_path: Path):
    code = (
        "import os, sys; os.rmdir(os.getcwd())\n"
        "from aaiclick.config import Settings\n"
        "Settings.from_env({'AAICLICK_LOCAL_ROOT': '/data'})\n"
        "try: Settings.from_env({'AAICLICK_LOCAL_ROOT': 'data'})\n"
        "except Exception as error: sys.exit(str(error))\n"
    )
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith("AAICLICK_LOCAL_ROOT=data cannot be used: the current directory does not exist.")


def test_printing_the_settings_shows_no_password():
    found = read(AAICLICK_SQL_URL="postgresql://u:hush@h/d", AAICLICK_CH_URL="clickhouse://u:hush@h/d")
    assert "hush" not in repr(found)


@pytest.mark.parametrize(
    ("value", "found"),
    [("s3://our-logs/a/b/", "s3://our-logs/a/b"), ("s3://our-logs", "s3://our-logs"), ("/mnt//logs/", "/mnt/logs")],
)
def test_logs_are_kept_in_a_directory_or_a_bucket(value: str, found: str) -> None:
    assert Settings.from_env({"HOME": "/h", "AAICLICK_LOG_STORE": value}).log_store == found


@pytest.mark.parametrize("value", ["", "s3:", "s3://", "s3://X", "s3://a/b", "s3://our-logs?x=1", "s3://key@our-logs"])
def test_what_is_no_bucket_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="AAICLICK_LOG_STORE"):
        Settings.from_env({"HOME": "/h", "AAICLICK_LOG_STORE": value})


def test_who_asks_a_server_and_has_no_clickhouse_opens_no_engine() -> None:
    asks = {"HOME": "/h", "AAICLICK_COORDINATOR_URL": "http://there:1"}
    assert Settings.from_env(asks).ch_url == "coordinator://servers"
    assert Settings.from_env(asks | {"AAICLICK_CH_URL": "clickhouse://a@b:1/c"}).ch_url == "clickhouse://a@b:1/c"
