"""`aaiclick setup`"""

import asyncio
import stat
from pathlib import Path

from aaiclick.orchestration.access.tokens import authenticate
from aaiclick.orchestration.store import schema
from aaiclick.urls import sqlite_url
from tests.cli.conftest import Cli


def test_it_makes_the_root_and_the_database(cli: Cli, root: Path) -> None:
    done = cli("setup")
    assert done.code == 0
    assert done.out.split() == [
        *("root", str(root)),
        *("database", sqlite_url(root / "local.db")),
        *("schema", schema.HEAD),
        *("made", "root,", "database"),
    ]
    assert done.err == "aaiclick is ready.\n"
    asyncio.run(schema.check(sqlite_url(root / "local.db")))


def test_it_makes_a_token_when_asked(cli: Cli) -> None:
    done = cli("setup", "--token", "me")
    shown = Path(done.out.split()[-1])
    assert done.err.endswith("The token is only in that file.\n")
    assert "aai_" not in done.out + done.err
    found = asyncio.run(authenticate(shown.read_text().strip()))
    assert (found.name, str(found.role)) == ("me", "admin")
    assert Path(cli("setup", "--token", "you", "--json").data["token_file"]).read_text().startswith("aai_")


def test_it_may_be_repeated(cli: Cli, root: Path) -> None:
    first, second = cli("setup", "--json"), cli("setup", "--json")
    assert first.data["made"] == ["root", "database"]
    assert second.data == first.data | {"made": []}
    assert second.err == ""


def test_what_it_makes_belongs_to_its_owner_alone(cli: Cli, root: Path) -> None:
    cli("setup")
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "local.db").stat().st_mode) == 0o600


def test_an_older_database_is_not_migrated_unasked(cli: Cli, root: Path, on_url, databases) -> None:
    with databases.empty() as url:
        if url.startswith("sqlite"):
            return
        on_url(url)
        refused = cli("setup")
        assert refused.code == 2
        assert refused.err.endswith("Run: aaiclick migrate upgrade head\n")
        assert asyncio.run(schema.current(url)) is None


def test_a_root_that_cannot_be_made(cli: Cli, root: Path) -> None:
    root.write_text("a file in its place")
    refused = cli("setup")
    assert refused.code == 2
    assert refused.out == ""
    assert "AAICLICK_LOCAL_ROOT" in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_file_that_is_no_database(cli: Cli, root: Path) -> None:
    root.mkdir()
    (root / "local.db").write_text("Dear diary, " * 1000)
    refused = cli("setup")
    assert refused.code == 6
    assert "it is not a SQLite database" in refused.err
