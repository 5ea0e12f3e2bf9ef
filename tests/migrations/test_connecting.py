"""Databases that are missing, damaged, locked away or out of reach: one clear line each."""

import asyncio
import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from aaiclick.errors import BackendUnreachable, DatabaseFileError, MissingExtra, SchemaError
from aaiclick.orchestration.store import connecting, schema
from aaiclick.urls import sqlite_url
from tests.migrations.pictures import picture, run
from tests.migrations.test_schema import environment
from tests.support import warm

ENSURE = """
import asyncio, sys
from aaiclick.orchestration.store.schema import check, ensure_local
print(asyncio.run(ensure_local(sys.argv[1])))
asyncio.run(check(sys.argv[1]))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "local.db"


async def test_a_missing_file_is_made_with_the_newest_schema(file: Path) -> None:
    assert await schema.ensure_local(sqlite_url(file)) is True
    await schema.check(sqlite_url(file))
    assert await schema.ensure_local(sqlite_url(file)) is False


def test_what_is_made_belongs_to_its_owner_alone(file: Path) -> None:
    before = os.umask(0)
    try:
        asyncio.run(schema.ensure_local(sqlite_url(file)))
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [stat.S_IMODE(parent.stat().st_mode) for parent in (file.parent, file.parent.parent)] == [0o700, 0o700]


async def test_a_path_may_have_any_characters(tmp_path: Path) -> None:
    file = tmp_path / "50% off & café?#" / "a b.db"
    await schema.ensure_local(sqlite_url(file))
    assert file.stat().st_size > 0
    await schema.check(sqlite_url(file))


async def test_looking_makes_no_file(file: Path) -> None:
    assert await schema.current(sqlite_url(file)) is None
    with pytest.raises(SchemaError, match="is not there yet"):
        await schema.check(sqlite_url(file))
    assert not file.parent.exists()


async def test_an_empty_file_counts_as_missing(tmp_path: Path) -> None:
    """So it looks to others while the one that makes it has not committed."""
    file = tmp_path / "local.db"
    file.touch()
    assert await schema.ensure_local(sqlite_url(file)) is True


async def test_an_existing_file_is_never_migrated_unasked(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "local.db")
    await run(url, "CREATE TABLE customers (id INTEGER)")
    before = await picture(url)
    assert await schema.ensure_local(url) is False
    assert await picture(url) == before


async def test_a_server_is_never_migrated_unasked(postgres_databases) -> None:
    with postgres_databases.empty() as url:
        assert await schema.ensure_local(url) is False
        assert await schema.current(url) is None


def test_processes_that_make_the_file_at_once_agree(file: Path) -> None:
    command = [sys.executable, "-c", ENSURE, sqlite_url(file)]
    at_once = [warm.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [process.communicate(timeout=60)[0].strip() for process in at_once]
    assert [process.returncode for process in at_once] == [0, 0, 0]
    assert answers.count("True") == 1


async def test_tasks_that_make_the_file_at_once_agree(file: Path) -> None:
    made = await asyncio.gather(*(schema.ensure_local(sqlite_url(file)) for _ in range(8)))
    assert made.count(True) == 1
    await schema.check(sqlite_url(file))


# ---------------------------------------------------------------- files that cannot be used


async def refused(url: str) -> str:
    """What is said, whichever way one comes."""
    said = []
    for ask in (schema.ensure_local, schema.upgrade):
        with pytest.raises(DatabaseFileError) as error:
            await ask(url)
        said.append(str(error.value))
    return " ".join(said)


async def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    assert (await refused(sqlite_url(tmp_path))).count("it is not a file") == 2


async def test_a_file_in_the_way_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = await refused(sqlite_url(tmp_path / "file" / "local.db"))
    assert str(tmp_path / "file" / "local.db") in said
    assert said.count("not a directory") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs a directory that even root cannot write to")
async def test_a_directory_that_takes_no_files() -> None:
    said = await refused(sqlite_url(Path("/proc/self/local.db")))
    assert "/proc/self/local.db cannot be used: " in said


async def test_a_directory_without_permission(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    await load_all_modules(tmp_path)
    with as_nobody(tmp_path):
        said = await refused(sqlite_url(tmp_path / "locked" / "local.db"))
    assert said.count("permission denied") == 2


async def test_a_read_only_file(tmp_path: Path) -> None:
    file = tmp_path / "local.db"
    await run(sqlite_url(file), "CREATE TABLE customers (id INTEGER)")
    file.chmod(0o444)
    await load_all_modules(tmp_path)
    with as_nobody(tmp_path), pytest.raises(DatabaseFileError, match=r"local\.db cannot be used: it is read-only"):
        await schema.upgrade(sqlite_url(file))


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "local.db"
    file.write_text("Dear diary, " * 1000)
    for ask in (schema.upgrade, schema.check, schema.current):
        with pytest.raises(DatabaseFileError, match=r"local\.db cannot be used: it is not a SQLite database"):
            await ask(sqlite_url(file))
    assert file.read_text() == "Dear diary, " * 1000


async def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "local.db"
    await schema.upgrade(sqlite_url(file))
    content = bytearray(file.read_bytes())
    content[100:4096] = b"\xff" * 3996  # behind the header, where the list of tables is
    file.write_bytes(content)
    for ask in (schema.upgrade, schema.check):
        with pytest.raises(DatabaseFileError, match=r"local\.db cannot be used: it is damaged"):
            await ask(sqlite_url(file))


async def test_a_start_on_a_damaged_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "local.db"
    file.write_text("Dear diary, " * 1000)
    engine = connecting._engine(sqlite_url(file), begin="BEGIN")
    async with engine.connect() as connection:
        with pytest.raises(DatabaseFileError, match="it is not a SQLite database"):
            await schema.require_current(connection)
    await engine.dispose()


async def test_a_file_that_another_process_keeps_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "local.db"
    await run(sqlite_url(file), "CREATE TABLE customers (id INTEGER)")
    monkeypatch.setattr(connecting, "SQLITE_WAIT_S", 0.1)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseFileError, match="another process holds it locked"):
            await schema.upgrade(sqlite_url(file))


# ---------------------------------------------------------------- servers that cannot be reached


@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "mariadb+asyncmy", "mysql+asyncmy"])
@pytest.mark.parametrize("ask", [schema.check, schema.upgrade, schema.current])
async def test_a_server_that_does_not_answer(scheme: str, ask) -> None:
    with free_port() as port, pytest.raises(BackendUnreachable) as error:
        await ask(f"{scheme}://user:hunter2@127.0.0.1:{port}/work")
    assert f"{scheme}://user:***@127.0.0.1:{port}/work: " in str(error.value)
    assert "hunter2" not in str(error.value)
    assert error.value.exit_code == 6


@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "mariadb+asyncmy"])
async def test_a_host_that_does_not_exist(scheme: str) -> None:
    with pytest.raises(BackendUnreachable, match=r"nowhere\.invalid"):
        await schema.check(f"{scheme}://user:hunter2@nowhere.invalid/work")


async def test_a_wrong_password_on_mariadb(mariadb_databases) -> None:
    with mariadb_databases.empty() as url:
        wrong = make_url(url).set(username="stranger", password="hunter2").render_as_string(hide_password=False)
        with pytest.raises(BackendUnreachable, match="Access denied") as error:
            await schema.check(wrong)
    assert "hunter2" not in str(error.value)


async def test_an_unknown_role_on_postgres(postgres_databases) -> None:
    """Our test server trusts whom it knows; an unknown role is refused at the same point as a wrong password."""
    with postgres_databases.empty() as url:
        wrong = make_url(url).set(username="stranger", password="hunter2").render_as_string(hide_password=False)
        with pytest.raises(BackendUnreachable, match="stranger") as error:
            await schema.check(wrong)
    assert "hunter2" not in str(error.value)


async def test_a_database_that_does_not_exist(databases) -> None:
    with databases.empty() as url:
        if url.startswith("sqlite"):
            return
        missing = make_url(url).set(database="no_such_database").render_as_string(hide_password=False)
        with pytest.raises(BackendUnreachable, match="no_such_database"):
            await schema.upgrade(missing)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("postgresql+asyncpg://user:hunter2@127.0.0.1/work", "asyncpg", "postgres"),
        ("mariadb+asyncmy://user:hunter2@127.0.0.1/work", "asyncmy", "mariadb"),
    ],
)
async def test_a_missing_driver(url: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs {package}, .*pip install 'aaiclick\[{extra}\]'"):
        await schema.check(url)


# ---------------------------------------------------------------- how it is done


async def load_all_modules(directory: Path) -> None:
    """Once root has stepped down, its modules may be out of reach."""
    await schema.upgrade(sqlite_url(directory / "warm.db"))


@contextmanager
def as_nobody(directory: Path) -> Iterator[None]:
    """Permissions bind everybody but root, so that root steps down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    modes = {place: stat.S_IMODE(place.stat().st_mode) for place in (directory, *directory.parents)}
    for place, mode in modes.items():
        if mode | 0o011 != mode:
            place.chmod(mode | 0o011)  # to pass through; the group stays root's
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for place, mode in modes.items():
            if mode | 0o011 != mode:
                place.chmod(mode)


@contextmanager
def free_port() -> Iterator[int]:
    """A port where nobody listens: bound, and so not given to anyone else."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
