"""Commands ask a server (`--api`) with the same output and exit codes as where the database is, and open none."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command

from aaiclick.cli import whole_app
from aaiclick.cli.afar import FROM_AFAR
from aaiclick.config import reset_settings
from tests.cli.conftest import Answer, Cli, cli
from tests.cli.test_cli import commands, start
from tests.server.conftest import surroundings
from tests.stories.test_one_view import things_made, washed
from tests.support.doors import DAYS
from tests.support.web_server import WebServer, web_server

__all__ = ["cli", "surroundings"]

NOWHERE = "postgresql://127.0.0.1:1/nothing"

THE_SAME = (
    "job list",
    "job list --status completed --limit 1",
    "job get {broken}",
    "job get {whole} --result",
    "job wait {broken}",
    "job wait {whole}",
    "job wait 12345",
    "job wait {waiting} --timeout 0.2",
    "job cancel {cancelled}",
    "job cancel {whole}",
    "job retry {broken} --dry-run",
    "job stats {broken}",
    "job graph {waiting}",
    "job graph {waiting} --format dot",
    "job tasks {waiting} --limit 1",
    "job events {broken}",
    "job logs {broken}",
    "job logs {broken} --failed",
    "task logs {failed}",
    "task logs {failed} --tail 1",
    "task logs {failed} --follow",
    "task logs {failed} --epoch 99",
    "task runs {failed}",
    "task why {blocked}",
    "task clear {failed} --dry-run",
    "task retry {blocked}",
    "task list",
    "task list --status failed --limit 1",
    "task list --blocked placement",
    "dlq replay {blocked}",
    "cache list",
    "cache list shop.prices",
    "cache clear shop.prices",
    "cache clear --id 12345",
    "registered-job fires nightly",
    "registered-job backfills nightly",
    "registered-job get-backfill {backfill}",
    "registered-job backfill nightly --dry-run " + " ".join(DAYS),
    "run-job nightly --key monday",
    "run-job nothing",
    "worker list",
    "worker get {worker}",
    "worker drain {worker}",
    "worker stop {worker} --now",
    "node list",
    "node list --status healthy --limit 1",
    "node get box",
    "node get nothing",
    "node cordon box",
    "node drain box",
    "node uncordon box",
    "node uncordon nothing",
    "node remove nothing --force",
    "resource list",
    "resource set seat 3",
    "resource set gpu 1",
    "resource list --name seat",
    "resource remove nothing",
    "data show people",
    "data show nothing",
    "audit",
)
LESS = {
    "task get {failed}": {"log_path"},
    "dlq list": {"arguments", "log_path"},
    "dlq list --job {broken}": {"arguments", "log_path"},
    "registered-job list": {"default_kwargs"},
    "registered-job get nightly": {"default_kwargs", "next_runs"},
    "registered-job backfill nightly --parallel 3 " + " ".join(DAYS): {
        "id",
        "created_at",
        "next_at",
        "counts",
        "total",
    },
    "registered-job cancel-backfill {backfill}": {"cancelled"},
    "job enable nightly": {"default_kwargs", "updated_at", "next_run_at"},
    "job disable nightly": {"default_kwargs", "updated_at", "next_run_at"},
    "register-job tests.server.outside_flows.echo --name nightly --update": {
        *("default_kwargs", "next_runs", "updated_at", "next_run_at", "entrypoint")
    },
    "data list": {"stored"},
    "doctor": {"settings"},
}
"""Commands whose answers lack these facts, or tell other ones: what servers do not tell, and what each call changes."""
ONLY_TEXT = "metrics"


@dataclass
class Both:
    """The command line with a database, and with a server alone."""

    cli: Cli
    server: WebServer
    ids: dict[str, str]
    patch: pytest.MonkeyPatch

    def here(self, *words: str) -> Answer:
        return self.cli(*words)

    def afar(self, *words: str) -> Answer:
        """Where a database would be opened, this would fail. The server has its own connection already."""
        return self.cli("--api", self.server.url, "--token", self.server.token, *words)

    def words(self, typed: str) -> list[str]:
        return typed.format(**self.ids).split(" ")


@pytest.fixture
def both(surroundings: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    ids = asyncio.run(things_made())
    with web_server() as server:
        yield Both(cli, server, ids, monkeypatch)


def told(text: str) -> str:
    """Without hints, which name other doors, and without what each call changes."""
    return re.sub(r"(\. (See|List what|/api/v1)[^\n]*|\d+ (audit|s ago))", "", text)


def test_the_answers_are_the_same(both: Both, subtests: pytest.Subtests) -> None:
    for typed in THE_SAME:
        with subtests.test(typed):
            words = both.words(typed)
            here, afar = both.here(*words), both.afar(*words)
            assert (afar.code, afar.out, told(afar.err)) == (here.code, here.out, told(here.err))
            here, afar = both.here(*words, "--json"), both.afar(*words, "--json")
            assert (afar.code, washed(afar.out)) == (here.code, washed(here.out))
    for typed, less in LESS.items():
        with subtests.test(typed):
            words = [*both.words(typed), "--json"]
            here, afar = both.here(*words), both.afar(*words)
            assert afar.code == here.code, afar.err
            assert without(washed(afar.data), less) == without(washed(here.data), less)
            assert both.afar(*words[:-1]).code == here.code
    with subtests.test(ONLY_TEXT):
        assert names_of(both.afar("metrics").out) == names_of(both.here("metrics").out)
        assert both.afar("metrics", "--json").code == 2


def names_of(metrics: str) -> list[str]:
    return [line.partition("{")[0].partition(" ")[0] for line in metrics.splitlines() if not line.startswith("#")]


def without(told: object, less: set[str]) -> object:
    if isinstance(told, dict):
        return {name: without(value, less) for name, value in told.items() if name not in less}
    return [without(each, less) for each in told] if isinstance(told, list) else told


def test_every_command_that_asks_a_server_is_tried() -> None:
    tried = {*THE_SAME, *LESS, ONLY_TEXT}
    assert {path for path in FROM_AFAR if not any(f"{typed} ".startswith(f"{path} ") for typed in tried)} == set()
    every = {" ".join(path) for path in commands(get_command(whole_app()))}
    assert every >= FROM_AFAR


def test_ids_may_be_shortened(both: Both) -> None:
    job = both.ids["broken"]
    assert both.afar("job", "get", job[-10:], "--json").data["id"] == job
    assert both.afar("job", "get", "1").code == both.here("job", "get", "1").code == 2
    assert both.afar("job", "get", "x").code == 2


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "setup",
            "migrate",
            "migrate current",
            "prune",
            "token list",
            "token create x",
            "worker start",
            "server start",
        ),
        *("background start", "local start", "data query SELECT", "data versions x", "data delete x --yes"),
        *("data rollback x 1", "data serve", "job logs 1234 --follow", "job list --offset 2", "metrics --json"),
        "register-job a.b",
    ],
)
def test_what_cannot_be_done_from_afar_says_so(cli: Cli, surroundings: Path, typed: str) -> None:
    answer = cli("--api", "http://127.0.0.1:1", "--token", "x", *typed.split(" "))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "through a server" in answer.err
    assert not surroundings.exists()


def test_a_server_that_is_not_there(cli: Cli) -> None:
    answer = cli("--api", "http://127.0.0.1:1", "--token", "x", "job", "list")
    assert (answer.code, answer.out) == (6, "")
    assert answer.err.startswith("aaiclick: Cannot reach the server at http://127.0.0.1:1: ")


def test_a_token_that_is_not_valid(both: Both) -> None:
    assert both.cli("--api", both.server.url, "--token", "wrong", "job", "list").code == 4


def test_no_database_is_opened_and_no_library_of_one_is_loaded(both: Both) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['aaiclick', 'job', 'wait', '{both.ids['whole']}', '--json']\n"
        "from aaiclick.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    variables = {"AAICLICK_API_URL": both.server.url, "AAICLICK_API_TOKEN": both.server.token}
    done = start("-c", code, AAICLICK_SQL_URL=NOWHERE, AAICLICK_CH_URL="clickhouse://127.0.0.1:1/x", **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "completed"
    loaded = {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}
    heavy = {"sqlalchemy", "alembic", "aiosqlite", "asyncpg", "asyncmy", "sqlite3", "chdb", "clickhouse_connect"}
    assert not loaded & (heavy | {"pyarrow", "fastapi", "pydantic", "httpx"})
    assert "aaiclick" in loaded


def test_the_client_needs_no_database_library() -> None:
    done = start("-c", "import sys, aaiclick.client; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert not {name.partition(".")[0] for name in loaded} & {"sqlalchemy", "chdb", "pyarrow", "clickhouse_connect"}
    assert not {name for name in loaded if name.startswith(("aaiclick.orchestration.store", "aaiclick.data"))}
    reset_settings()
