"""`aaiclick local start`: what it refuses, and what it says first. Its life on real processes is among the stories."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from aaiclick.cli.local.fleet import Fleet
from aaiclick.cli.local.fleet_lock import lock_of
from aaiclick.config import reset_settings
from tests.cli.conftest import Cli


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be started."""
    found: list[Any] = []

    async def run(fleet: Fleet) -> int:
        found.append(fleet.plan)
        return 0

    monkeypatch.setattr(Fleet, "run", run)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    return found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "0"], "--workers"),
        (["--workers", "-1"], "--workers"),
        (["--workers", "257"], "256"),
        (["--workers", "two"], "--workers"),
        (["--concurrency", "0"], "concurrency"),
        (["--concurrency", "10001"], "from 1 to 10000"),
        (["--executor", "thread"], "one of process, inline"),
        (["--app-dir", "no/such/place"], "the directory does not exist"),
        (["--port", "65536"], "--port"),
        (["--port", "x"], "--port"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(
    cli: Cli, root: Path, options: list[str], said: str
) -> None:
    answer = cli("local", "start", *options)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err
    assert not root.exists()


def test_the_verb_must_be_named(cli: Cli) -> None:
    assert cli("local").code == 2


def test_it_makes_what_is_missing_and_says_where_it_is(cli: Cli, root: Path, plans: list[Any], tmp_path: Path) -> None:
    answer = cli("local", "start", "--app-dir", str(tmp_path), "-v")
    assert (answer.code, answer.out) == (0, "")
    for said in (root / "local.db", f"chdb://{root / 'chdb_data'}", root / "logs", tmp_path, "2; tasks at a time"):
        assert str(said) in answer.err
    assert (root / "local.db").exists()
    (plan,) = plans
    assert (plan.engine, plan.workers, plan.verbose, plan.grace_s) == (root / "chdb_data", 2, True, 30.0)
    assert plan.worker_options == ("--concurrency", "4", "--executor", "process", "--app-dir", str(tmp_path))


@pytest.mark.parametrize(
    ("options", "slots"),
    [([], "4"), (["--workers", "3"], "3"), (["--workers", "9"], "1"), (["--executor", "inline"], "100")],
)
def test_the_workers_share_the_processors(cli: Cli, plans: list[Any], options: list[str], slots: str) -> None:
    assert cli("local", "start", *options).code == 0
    assert plans[0].worker_options[1] == slots


def test_as_json_the_first_line_says_where_things_are(cli: Cli, root: Path, plans: list[Any]) -> None:
    begins = json.loads(cli("local", "start", "--json", "--concurrency", "5").out)
    assert (begins["event"], begins["root"], begins["workers"], begins["concurrency"]) == ("begins", str(root), 2, 5)


def test_a_token_is_made_and_shown_once(cli: Cli, plans: list[Any]) -> None:
    first, second = (json.loads(cli("local", "start", "--json").out) for _ in range(2))
    assert first["server"].startswith("http://127.0.0.1:")
    assert Path(first["token_file"]).read_text().startswith("aai_")
    assert "aai_" not in json.dumps(first)
    assert second["token_file"] is None
    assert "aai_" not in cli("local", "start").err
    assert all(plan.door > 2 for plan in plans)
    assert plans[0].server_options[0] == "--app-dir"


def test_where_no_server_is_installed_the_rest_runs(
    cli: Cli, plans: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aaiclick.cli.local.server_socket.find_spec", lambda _: None)
    answer = cli("local", "start")
    assert (answer.code, plans[0].door) == (0, None)
    assert "pip install 'aaiclick[server]'" in answer.err
    asked = cli("local", "start", "--port", "0")
    assert (asked.code, asked.err.count("\n"), len(plans)) == (2, 1, 1)


def test_a_port_that_was_asked_for_and_is_taken(cli: Cli, plans: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = cli("local", "start", "--port", str(taken.getsockname()[1]))
    assert (answer.code, answer.err.count("\n"), plans) == (2, 1, [])
    assert "another process listens there" in answer.err


def test_it_watches_where_it_is_told_to(cli: Cli, plans: list[Any], tmp_path: Path) -> None:
    assert cli("local", "start", "--reload", "--app-dir", str(tmp_path)).code == 0
    assert cli("local", "start").code == 0
    assert [plan.watched for plan in plans] == [str(tmp_path), None]


def test_on_a_clickhouse_server_no_engine_is_started(
    cli: Cli, plans: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_CH_URL", "clickhouse://default:secret@host:8123/default")
    reset_settings()
    answer = cli("local", "start")
    assert "clickhouse://default:***@host:8123/default (no engine is started here)" in answer.err
    assert plans[0].engine is None


def test_a_second_one_on_the_same_root_works_beside_the_first_without_a_server(
    cli: Cli, root: Path, plans: list[Any]
) -> None:
    root.mkdir()
    with lock_of(root) as first:
        first.tell_server("http://127.0.0.1:8765/api/v1")
        told, asked = cli("local", "start"), cli("local", "start", "--json", "--port", "0")
    assert (told.code, asked.code) == (0, 0)
    assert f"begins beside that of process {os.getpid()}, which keeps running" in told.err
    assert "that of the other fleet, http://127.0.0.1:8765/api/v1; when that fleet ends" in told.err
    assert json.loads(asked.out)["server"].startswith("http://127.0.0.1:")
    assert [(plan.door is None, plan.seat is None) for plan in plans] == [(True, False), (False, False)]


def test_a_server_that_is_away(cli: Cli, on_url, plans: list[Any]) -> None:
    on_url("postgresql+asyncpg://me:secret@127.0.0.1:1/none")
    answer = cli("local", "start")
    assert (answer.code, answer.err.count("\n")) == (6, 1)
    assert "secret" not in answer.err
    assert plans == []


def test_the_exit_code_is_the_fleets(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(fleet: Fleet) -> int:
        return 6

    monkeypatch.setattr(Fleet, "run", run)
    assert cli("local", "start").code == 6
