"""The servers that tests run on: they answer, they end, and a missing one is a failure."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncmy
import asyncpg
import psutil
import pytest
from redis.asyncio import Redis
from sqlalchemy.engine import make_url

from tests.servers import SERVERS, postgres, programs, url_variable
from tests.servers.process import NO_SYNC
from tests.servers.programs import ServerMissing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_server_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SERVERS:
        monkeypatch.delenv(url_variable(name), raising=False)


@pytest.fixture
def nothing_to_be_found(monkeypatch: pytest.MonkeyPatch, no_server_given: None) -> None:
    """No program on PATH or elsewhere, no package manager, no wheel."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(programs, "PLACES", ())
    monkeypatch.setattr(postgres, "WHEEL", "a-wheel-that-nobody-carries")


async def ask_postgres(url: str) -> dict[str, str]:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        settings = ("fsync", "synchronous_commit", "full_page_writes", "max_connections", "server_encoding")
        return {name: await connection.fetchval(f"SHOW {name}") for name in settings}
    finally:
        await connection.close()


async def ask_mariadb(url: str) -> dict[str, str]:
    to = make_url(url)
    connection = await asyncmy.connect(host=to.host, port=to.port, user=to.username, password=to.password or "")
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(
                "SHOW VARIABLES WHERE variable_name IN"
                " ('innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_doublewrite',"
                " 'character_set_server', 'max_connections')"
            )
            return dict(await cursor.fetchall())
    finally:
        connection.close()


async def test_postgres_answers(postgres_server: str) -> None:
    answer = await ask_postgres(postgres_server)
    assert answer["synchronous_commit"] == "on"
    assert int(answer["max_connections"]) >= 200
    assert answer["server_encoding"] == "UTF8"


async def test_mariadb_answers(mariadb_server: str) -> None:
    answer = await ask_mariadb(mariadb_server)
    assert answer["innodb_flush_log_at_trx_commit"] == "1"
    assert int(answer["max_connections"]) >= 200
    assert answer["character_set_server"] == "utf8mb4"


@pytest.mark.parametrize("told", [True, False])
async def test_a_server_waits_for_the_disk_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, no_server_given: None, told: bool
) -> None:
    """Told not to, each commit is still written before it is answered: a killed server loses nothing."""
    monkeypatch.delenv(NO_SYNC)
    if told:
        monkeypatch.setenv(NO_SYNC, "1")
    with SERVERS["postgres"]() as url:
        answer = await ask_postgres(url)
        assert (answer["fsync"], answer["synchronous_commit"]) == ("off" if told else "on", "on")
    with SERVERS["mariadb"]() as url:
        answer = await ask_mariadb(url)
        assert (answer["innodb_flush_log_at_trx_commit"], answer["innodb_doublewrite"]) == ("1", "ON")
        assert (answer["innodb_flush_method"] == "nosync") is told


async def test_redis_answers(redis_server: str) -> None:
    async with Redis.from_url(redis_server) as client:
        await client.set("greeting", "hello", ex=60)
        assert await client.get("greeting") == b"hello"


@pytest.mark.parametrize("server", list(SERVERS))
def test_a_server_is_gone_after_its_context(server: str, no_server_given: None) -> None:
    before = children()
    with SERVERS[server]() as url:
        assert listens(url)
        started = children() - before
        assert started
    assert not listens(url)
    assert not any(process.is_running() for process in started)


@pytest.mark.parametrize("server", list(SERVERS))
def test_a_server_is_gone_after_its_owner_is_killed(server: str, no_server_given: None) -> None:
    with owner_of(server) as (owner, url):
        assert listens(url)
        started = psutil.Process(owner.pid).children(recursive=True)
        directory = private_directory_of(started)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        psutil.wait_procs(started, timeout=60)
        assert not listens(url)
        assert not directory.exists()


@pytest.mark.parametrize("name", list(SERVERS))
def test_a_given_url_is_used_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(url_variable(name), "scheme://somebody:secret@elsewhere:1/name")
    with SERVERS[name]() as url:
        assert url.endswith("://somebody:secret@elsewhere:1/name")


@pytest.mark.parametrize("name", list(SERVERS))
def test_a_missing_server_says_what_to_install(name: str, nothing_to_be_found: None) -> None:
    with pytest.raises(ServerMissing, match=r"apt-get install .*\n.*brew install") as missing, SERVERS[name]():
        pass
    assert url_variable(name) in str(missing.value)
    assert f"--without {name}" in str(missing.value)


def test_of_several_versions_the_newest_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("9", "15", "17"):
        program = tmp_path / version / "postgres"
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(programs, "PLACES", (f"{tmp_path}/*",))
    assert programs.find_program("postgres") == tmp_path / "17" / "postgres"


def test_packages_are_installed_where_we_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    for name, script in {
        "sudo": 'shift; exec "$@"',
        "env": 'shift; exec "$@"',
        "true": "exit 0",
        "apt-get": f'echo "$@" >>{asked}',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.install_packages(debian="one two", homebrew="")
    update, install = asked.read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("install -y --no-install-recommends one two")


def test_a_test_without_its_server_fails(tmp_path: Path) -> None:
    unreachable = {url_variable("postgres"): "postgresql://postgres@127.0.0.1:1/postgres"}
    outcome = run_pytest(tmp_path, environment=os.environ | unreachable)
    assert outcome.returncode == 1
    assert "skipped" not in outcome.stdout
    assert "1 error" in outcome.stdout


def test_a_server_left_out_by_flag_is_left_out_loudly(tmp_path: Path) -> None:
    outcome = run_pytest(tmp_path, "--without=postgres", environment=dict(os.environ))
    assert "LEFT OUT by --without=postgres: 1 tests were not run" in outcome.stdout
    assert "1 deselected" in outcome.stdout
    assert "skipped" not in outcome.stdout


def test_the_command_gets_the_urls_and_its_exit_code_is_kept(no_server_given: None) -> None:
    script = "import os, sys; sys.exit(7 if os.environ['TEST_REDIS_URL'].startswith('redis://') else 1)"
    command = [sys.executable, "-m", "tests.servers", "redis", "--", sys.executable, "-c", script]
    environment = os.environ | {"TEST_REDIS_URL": "redis://given"}
    assert subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode == 7


@pytest.mark.parametrize("arguments", [[], ["redis"], ["oracle", "--", "true"], ["redis", "--"]])
def test_wrong_use_is_told(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.servers", *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m tests.servers")


@contextmanager
def owner_of(server: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that holds a server until it is ended."""
    script = f"import sys, tests.servers as t\nwith t.SERVERS[{server!r}]() as url: print(url, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout
        yield owner, owner.stdout.readline().strip()
        owner.kill()


def run_pytest(directory: Path, *options: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one test that needs PostgreSQL under our conftest, in a pytest of its own."""
    test = directory / "test_one.py"
    test.write_text(
        'import pytest\n\n@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)\n'
        "def test_one(sql_url): ...\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        "pyproject.toml",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
        str(test),
    ]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)


def private_directory_of(processes: list[psutil.Process]) -> Path:
    """Where the server's own processes work; a server has short-lived ones too, which may be gone by now."""
    for process in reversed(processes):
        with suppress(psutil.Error):
            inside = Path(process.cwd())
            for path in (inside, *inside.parents):
                if path.name.startswith("aaiclick-"):
                    return path
    raise AssertionError(f"none of {processes} works in a directory of its own")


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def listens(url: str) -> bool:
    to = make_url(url)
    try:
        socket.create_connection((str(to.host), int(to.port or 0)), timeout=1).close()
    except OSError:
        return False
    return True
