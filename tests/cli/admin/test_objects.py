"""`aaiclick data list|show|query|delete`"""

import asyncio
import sys
from pathlib import Path

import pytest

from aaiclick.data import browsing, create_object_from_value, data_context, open_object
from tests.cli.conftest import Cli
from tests.cli.test_output import Terminal


def keep(name: str, value: object) -> None:
    async def work() -> None:
        async with data_context():
            await create_object_from_value(value, name=name)

    asyncio.run(work())


@pytest.fixture
def people(root: Path) -> None:
    keep("people", {"name": ["Ann", "Bob\x1b[31m", "Cy"], "age": [41, 27, 33]})


def test_list(cli: Cli, people: None) -> None:
    listed = cli("data", "list")
    header, row = (line.split("\t") for line in listed.out.splitlines())
    assert header == ["name", "table", "rows", "bytes"]
    assert row[:3] == ["people", "p_people", "3"]
    assert listed.err == "1 Object\n"
    assert cli("data", "list", "--json").data["stored"][0]["rows"] == 3


def test_no_objects(cli: Cli) -> None:
    assert cli("data", "list").err == "no Objects\n"
    assert cli("data", "list", "--json").data == {"objects": [], "stored": []}


def test_show(cli: Cli, people: None) -> None:
    shown = cli("data", "show", "people", "--limit", "2")
    assert shown.out.splitlines()[0] == "name\tage"
    assert len(shown.out.splitlines()) == 3
    assert "people: table; name String, age Int64" in shown.err
    assert "2 rows; there are more (--limit)" in shown.err
    data = cli("data", "show", "people", "--json").data
    assert [column["name"] for column in data["columns"]] == ["name", "age"]
    assert (sorted(data["rows"])[0], data["complete"], data["shape"]) == (["Ann", 41], True, "table")
    assert "\x1b" not in cli("data", "show", "people").out


def test_query(cli: Cli, people: None) -> None:
    found = cli("data", "query", "SELECT name, age + 1 AS next FROM p_people ORDER BY age")
    assert found.out.splitlines() == ["name\tnext", "Bob\\x1b[31m\t28", "Cy\t34", "Ann\t42"]
    assert found.err == "3 rows\n"
    some = cli("data", "query", "SELECT age FROM p_people ORDER BY age DESC;", "--limit", "1", "--json").data
    assert (some["rows"], some["complete"]) == ([[41]], False)
    assert cli("data", "query", "SELECT nan, toDate('2026-11-16')", "--json").data["rows"] == [["nan", "2026-11-16"]]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE p_people",
        "INSERT INTO p_people VALUES ('x', 1)",
        "SELECT 1; DROP TABLE p_people",
        "SELECT 1) FORMAT CSV; DROP TABLE p_people; --",
        "SELECT 1 INTO OUTFILE 'here.csv' FORMAT CSV",
        "SELECT 1 INTO OUTFILE 'here.csv' FORMAT CSV; SELECT 1",
        "SELECT * FROM file('/etc/passwd', 'LineAsString') SETTINGS readonly = 0",
        "SET readonly = 0",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SYSTEM SHUTDOWN",
        "SELEKT 1",
        "",
        "SELECT nothing FROM p_people",
    ],
)
def test_nothing_can_be_changed(
    cli: Cli, people: None, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = cli("data", "query", sql)
    assert (refused.code, refused.out) == (2, "")
    assert len(refused.err.splitlines()) == 1
    assert not (tmp_path / "here.csv").exists()
    assert cli("data", "query", "SELECT count() FROM p_people", "--json").data["rows"] == [[3]]


def test_its_own_settings_do_not_lift_the_limits(cli: Cli) -> None:
    told = "SELECT getSetting('readonly') AS a, getSetting('max_execution_time') AS b"
    lifted = cli("data", "query", f"{told} SETTINGS readonly = 0, max_execution_time = 0", "--json")
    assert lifted.data["rows"] == [[1, browsing.SECONDS_MAX]]


def test_what_costs_too_much_is_refused(cli: Cli, people: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(browsing.LIMITS, "max_result_bytes", 1)
    assert cli("data", "query", "SELECT * FROM p_people").code == 2
    assert cli("data", "query", "SELECT 1", "--limit", "10001").code == 2


def test_versions_and_the_way_back(cli: Cli, people: None) -> None:
    (first,) = cli("data", "versions", "people", "--json").data["versions"]
    assert (first["version"], first["operation"]) == (1, "create")

    async def change() -> None:
        async with data_context():
            found = await open_object("people")
            await found.materialize("people", full_refresh=True)

    asyncio.run(change())
    assert "2 versions" in cli("data", "versions", "people").err
    said = cli("data", "rollback", "people", "1")
    assert said == (0, "", "Object people has the rows of version 1 again, as version 3.\n")
    assert cli("data", "rollback", "people", "2", "--json").data == {"name": "people", "version": 2, "latest": 4}
    assert [each["version"] for each in cli("data", "versions", "people", "--json").data["versions"]] == [1, 2, 3, 4]
    assert [each["table"] for each in cli("data", "list", "--json").data["stored"]] == ["p_people@4"]
    assert cli("data", "versions", "nobody").code == cli("data", "rollback", "people", "9").code == 3


def test_delete(cli: Cli, people: None) -> None:
    refused = cli("data", "delete", "people")
    assert (refused.code, refused.out) == (2, "")
    assert "Say --yes" in refused.err
    assert cli("data", "delete", "people", "--yes") == (0, "", "Object people is deleted.\n")
    assert cli("data", "delete", "people", "--yes").code == 3
    keep("more", [1, 2])
    assert cli("data", "delete", "more", "-y", "--json").data == {"name": "more", "deleted": True}


@pytest.mark.parametrize(
    ("answered", "code", "left"), [("y\n", 0, []), ("n\n", 130, ["people"]), ("", 130, ["people"])]
)
def test_a_person_is_asked(
    cli: Cli, people: None, monkeypatch: pytest.MonkeyPatch, answered: str, code: int, left: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answered))
    assert cli("data", "delete", "people").code == code
    assert [each["name"] for each in cli("data", "list", "--json").data["stored"]] == left


@pytest.mark.parametrize("verb", ["show", "delete"])
def test_what_is_not_there(cli: Cli, verb: str) -> None:
    options = ["--yes"] if verb == "delete" else []
    assert cli("data", verb, "nothing", *options).code == 3
    assert cli("data", verb, "a'b; DROP", *options).code == 2
