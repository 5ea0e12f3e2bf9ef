"""`aaiclick doctor`"""

import asyncio
import tomllib
from pathlib import Path

import pytest

from aaiclick import __version__
from aaiclick.cli.admin import doctor
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.config import reset_settings
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control.accounts import Accounts
from aaiclick.orchestration.store import schema
from tests.cli.conftest import Cli
from tests.servers.process import free_port

ROOT = Path(__file__).parents[3]


def checks(answer) -> dict[str, str]:
    return {check["name"]: check["state"] for check in answer.data["checks"]}


def test_a_new_local_root_is_fine(cli: Cli, root: Path) -> None:
    answer = cli("doctor")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].split() == ["aaiclick", __version__]
    assert f"ok    schema       {schema.HEAD}" in lines
    names = ["database", "schema", "workers", "stale_tasks", "leader", "reconcilers", "disk"]
    assert [line.split()[1] for line in lines[-7:]] == names
    assert {line.split()[0] for line in lines[-7:]} == {"ok", "warn"}
    assert str(root) in answer.out


def test_settings_are_shown_as_they_are_written(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "flows,more.flows")
    reset_settings()
    told = cli("doctor", "--json").data["settings"]
    assert (told["entrypoint_prefixes"], told["server_hosts"]) == ("flows, more.flows", "")


def test_as_json(cli: Cli) -> None:
    answer = cli("doctor", "--json")
    assert answer.code == 0
    assert answer.data["healthy"] is True
    assert answer.data["extras"].keys() == doctor.EXTRAS.keys()
    assert answer.data["packages"]["sqlalchemy"].startswith("2.")
    assert answer.data["settings"]["session_s"] == 30.0
    assert answer.data["settings"]["machine_id"] is None
    assert checks(answer) == {
        "database": "ok",
        "schema": "ok",
        "workers": "warn",
        "stale_tasks": "ok",
        "leader": "warn",
        "reconcilers": "ok",
        "disk": "ok",
    }
    assert answer.data["reconcilers"] == []


def test_a_server_that_is_away_is_exit_code_6_and_the_rest_is_shown(cli: Cli, on_url, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    on_url(f"postgresql://me:hunter2@127.0.0.1:{free_port()}/away")
    answer = cli("doctor")
    assert answer.code == 6
    assert "hunter2" not in answer.out + answer.err
    assert "sql_url                    postgresql+asyncpg://me:***@127.0.0.1:" in answer.out
    states = [line.split()[0] for line in answer.out.splitlines()[-7:]]
    assert states == ["FAIL"] * 6 + ["ok"]


def test_a_check_that_fails_is_exit_code_1(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(root / "local.db" / "logs"))
    answer = cli("doctor", "--json")
    assert answer.code == 1
    assert answer.data["healthy"] is False
    assert checks(answer)["disk"] == "fail"


def test_what_the_leader_does_is_shown(cli: Cli, on_url, migrated_sql_url: str) -> None:
    on_url(migrated_sql_url)

    async def lead() -> None:
        async with connected() as database:
            accounts = Accounts(database, ["fire_schedules", "sweep_tables", "work_off_ripples"], SYSTEM_CLOCK)
            accounts.note("fire_schedules", 3, 0.25)
            accounts.note("sweep_tables", 0, 1.5, ValueError("no"))
            await accounts.write(1)

    asyncio.run(lead())
    answer = cli("doctor")
    assert answer.code == 0
    shown = [line.split("\t") for line in answer.out.splitlines() if "\t" in line]
    assert shown[0] == ["reconciler", "last run", "runs", "done", "failed", "seconds", "last trouble"]
    fired, swept, worked = shown[1:]
    assert [fired[0], *fired[2:]] == ["fire_schedules", "1", "3", "0", "0.250", ""]
    assert fired[1].endswith(" s ago")
    assert [swept[0], *swept[2:6]] == ["sweep_tables", "1", "0", "1", "1.500"]
    assert swept[6].endswith(": ValueError: no")
    assert worked == ["work_off_ripples", "", "0", "0", "0", "0.000", ""]
    hint = "The leader tries again; its log says more."
    assert f"warn  reconcilers  sweep_tables fails: ValueError: no. {hint}" in answer.out.splitlines()
    data = cli("doctor", "--json").data
    assert data["healthy"] is True
    fired, swept, worked = data["reconcilers"]
    assert (fired["name"], fired["runs"], fired["done"], fired["is_failing"]) == ("fire_schedules", 1, 3, False)
    assert (swept["trouble"], swept["is_failing"], swept["ran_at"]) == ("ValueError: no", True, swept["trouble_at"])
    assert (worked["ran_at"], worked["seconds"]) == (None, 0)


def test_settings_that_are_wrong_are_one_line(cli: Cli, on_url) -> None:
    on_url("nosuch://x")
    answer = cli("doctor")
    assert (answer.code, answer.out) == (2, "")
    assert len(answer.err.splitlines()) == 1


def test_a_package_that_is_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": "no-such-package-anywhere"})
    assert "extras                     moon (not installed)" in cli("doctor").out.splitlines()
    assert cli("doctor", "--json").data["extras"] == {"moon": None}


def test_it_knows_the_packages_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [need.split(">")[0].split("[")[0] for need in project["dependencies"]]
    assert sorted(names) == sorted(doctor.PACKAGES)
    extras = project["optional-dependencies"]
    brought = {extra: needs[0].split(">")[0].split("[")[0] for extra, needs in extras.items()}
    assert {extra: name for extra, name in brought.items() if extra not in ("all", "dev")} == doctor.EXTRAS
