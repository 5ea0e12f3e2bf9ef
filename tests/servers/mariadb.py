"""MariaDB for tests and benchmarks, with its default durability unless told not to wait for the disk."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .process import NO_SYNC, answer_on, private_directory, run_once, serving, unprivileged_account
from .programs import ServerMissing, find_program, install_packages

VARIABLE = "TEST_MARIADB_URL"
PACKAGES = {"debian": "mariadb-server", "homebrew": "mariadb"}
CONNECTIONS_MAX = 200


@contextmanager
def server() -> Iterator[str]:
    """A MariaDB; yields its URL, whose user may create databases."""
    if given := os.environ.get(VARIABLE):
        yield f"mariadb+asyncmy://{given.split('://', 1)[1]}"
        return
    daemon, install = find_programs()
    account = unprivileged_account("mysql")
    with private_directory(account) as directory:
        data = directory / "data"
        options = ["--no-defaults", f"--datadir={data}", f"--tmpdir={directory}"]  # TMPDIR may be ours alone
        run_once(
            [str(install), *options, "--auth-root-authentication-method=normal", "--skip-name-resolve"],
            directory=directory,
            account=account,
        )
        with serving(
            lambda port: [str(daemon), *options, *settings(directory, port)],
            directory=directory,
            account=account,
            stop_signal=signal.SIGKILL,  # one process whose files go with it: nothing to save
            is_ready=lambda port: len(answer_on(port)) > 0,
        ) as port:
            yield f"mariadb+asyncmy://root@127.0.0.1:{port}/test"


def find_programs() -> tuple[Path, Path]:
    """The daemon, and the script that makes an empty data directory."""
    if found := look():
        return found
    if install_packages(**PACKAGES) and (found := look()):
        return found
    raise ServerMissing(VARIABLE, **PACKAGES)


def look() -> tuple[Path, Path] | None:
    daemon = find_program("mariadbd", "mysqld")
    install = find_program("mariadb-install-db", "mysql_install_db")
    return (daemon, install) if daemon and install and is_mariadb(daemon) else None


def is_mariadb(daemon: Path) -> bool:
    """MySQL has a `mysqld` too, and is another database."""
    told = subprocess.run([str(daemon), "--no-defaults", "--version"], capture_output=True, text=True, check=False)
    return "MariaDB" in told.stdout


def settings(directory: Path, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--socket={directory / 'socket'}",
        f"--pid-file={directory / 'pid'}",
        "--character-set-server=utf8mb4",
        f"--max-connections={CONNECTIONS_MAX}",
        "--skip-name-resolve",
        *(["--innodb-flush-method=nosync"] if NO_SYNC in os.environ else []),
    ]
