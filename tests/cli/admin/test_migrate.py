"""`aaiclick migrate`"""

import asyncio
from pathlib import Path

import pytest

from aaiclick.orchestration.store import schema
from tests.cli.conftest import Cli
from tests.migrations.pictures import run


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "upgrade"], ["migrate", "upgrade", "head"]])
def test_upgrade_in_its_three_spellings(cli: Cli, on_url, sql_url: str, command: list[str]) -> None:
    on_url(sql_url)
    done = cli(*command)
    assert done == (0, f"{schema.HEAD}\n", "The schema was upgraded; before there was none.\n")
    asyncio.run(schema.check(sql_url))
    assert cli(*command) == (0, f"{schema.HEAD}\n", f"The schema was {schema.HEAD} already.\n")


def test_upgrade_as_json(cli: Cli, on_url, sql_url: str) -> None:
    on_url(sql_url)
    assert cli("migrate", "--json").data == {"before": None, "after": schema.HEAD}
    assert cli("migrate", "upgrade", "--json").data == {"before": schema.HEAD, "after": schema.HEAD}


def test_current_and_check(cli: Cli, on_url, sql_url: str) -> None:
    on_url(sql_url)
    assert cli("migrate", "current") == (0, "", "There is no schema yet. Run: aaiclick migrate upgrade head\n")
    assert cli("migrate", "current", "--json").data == {"version": None, "needed": schema.HEAD}
    refused = cli("migrate", "check")
    assert (refused.code, refused.out) == (2, "")
    assert f"is not there yet, this version of aaiclick needs {schema.HEAD}" in refused.err

    cli("migrate")
    assert cli("migrate", "current") == (0, f"{schema.HEAD}\n", "")
    assert cli("migrate", "check") == (0, f"{schema.HEAD}\n", "")
    assert cli("migrate", "check", "--json").data == {"version": schema.HEAD, "needed": schema.HEAD}


def test_a_newer_schema_is_refused(cli: Cli, on_url, sql_url: str) -> None:
    on_url(sql_url)
    cli("migrate")
    asyncio.run(run(sql_url, "UPDATE aaiclick_schema SET version_num = '9999'"))
    for command in ("upgrade", "check"):
        refused = cli("migrate", command)
        assert refused.code == 2
        assert f"is 9999, this version of aaiclick needs {schema.HEAD}. Install a newer aaiclick" in refused.err


def test_sql_is_printed_and_nothing_else_happens(cli: Cli, on_url) -> None:
    url = "postgresql+asyncpg://nobody:hunter2@nowhere.invalid/none"
    on_url(url)
    printed = cli("migrate", "upgrade", "head", "--sql")
    assert printed == (0, schema.sql(url).strip() + "\n", "")
    assert cli("migrate", "--sql") == printed
    assert cli("migrate", "--sql", "--json").data == {"sql": schema.sql(url)}


def test_an_option_before_the_verb_is_not_ignored(cli: Cli) -> None:
    refused = cli("migrate", "--sql", "upgrade")
    assert refused.code == 2
    assert "put the option after upgrade" in refused.err


def test_an_unknown_version(cli: Cli) -> None:
    refused = cli("migrate", "upgrade", "hed")
    assert refused.code == 2
    assert "hed is not accepted: there is no such version of the schema" in refused.err


def test_a_copy_says_what_it_did_and_what_it_did_not(cli: Cli, on_url, tmp_path: Path) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("one.db", "two.db"))
    on_url(source)
    cli("migrate")
    refused = cli("migrate", "copy", "--to", "mysq://x")
    assert (refused.code, "--to" in refused.err) == (2, True)
    done = cli("migrate", "copy", "--to", target)
    assert done.code == 0
    assert done.out.startswith("table\trows\tdigest\naudit\t0\t0000000000000000\n")
    assert "All 1 rows are the same in sqlite" in done.err
    assert "The data of Objects and the logs of tasks were not moved" in done.err
    again = cli("migrate", "copy", "--to", f"sqlite:///{tmp_path / 'three.db'}", "--json")
    assert {"name": "jobs", "rows": 0, "digest": "0" * 64} in again.data["tables"]
    on_url(f"sqlite:///{tmp_path / 'nowhere.db'}")
    assert "is not there yet" in cli("migrate", "copy", "--to", f"sqlite:///{tmp_path / 'four.db'}").err
    assert not (tmp_path / "nowhere.db").exists()
