"""A database server of a test's own, which it may stop and start again: same data, same port."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.servers import mariadb, postgres
from tests.servers.process import (
    answer_on,
    free_port,
    private_directory,
    run_once,
    start,
    stop,
    unprivileged_account,
    wait_until_ready,
)


class Server:
    """A server process that can be restarted."""

    def __init__(
        self,
        directory: Path,
        account: str,
        url: str,
        command: list[str],
        *,
        pid_file: Path,
        in_order: signal.Signals,
        is_ready: Callable[[], bool],
    ) -> None:
        self.directory, self.account, self.url, self.command = directory, account, url, command
        self._pid_file, self._in_order, self._is_ready = pid_file, in_order, is_ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = start(self.command, directory=self.directory, account=self.account, stop_signal=signal.SIGQUIT)
        wait_until_ready(self._process, self._is_ready, self.directory / "server.log")

    def stop(self) -> None:
        """In order: what is committed is kept, who is connected is cut off."""
        assert self._process is not None
        os.kill(int(self._pid_file.read_text().split()[0]), self._in_order)
        self._process.wait(30)

    def end(self) -> None:
        if self._process is not None:
            stop(self._process)


@contextmanager
def restartable(dialect: str) -> Iterator[Server]:
    """A server of this dialect, running."""
    account = unprivileged_account({"postgres": "postgres", "mariadb": "mysql"}[dialect])
    with private_directory(account) as directory:
        server = (_postgres if dialect == "postgres" else _mariadb)(directory, account, free_port())
        server.start()
        try:
            yield server
        finally:
            server.end()


def _postgres(directory: Path, account: str, port: int) -> Server:
    programs, data = postgres.find_programs(directory, account), directory / "data"
    initdb = [str(programs / "initdb"), "--pgdata", str(data), "--username=postgres", "--auth=trust", "--no-sync"]
    run_once([*initdb, "--encoding=UTF8", "--no-locale"], directory=directory, account=account)
    return Server(
        directory,
        account,
        f"postgresql+asyncpg://postgres@127.0.0.1:{port}/postgres",
        postgres.command(programs, data, port),
        pid_file=data / "postmaster.pid",
        in_order=signal.SIGINT,
        is_ready=partial(postgres.is_ready, data),
    )


def _mariadb(directory: Path, account: str, port: int) -> Server:
    daemon, install = mariadb.find_programs()
    options = ["--no-defaults", f"--datadir={directory / 'data'}", f"--tmpdir={directory}"]
    authentication = ["--auth-root-authentication-method=normal", "--skip-name-resolve"]
    run_once([str(install), *options, *authentication], directory=directory, account=account)
    return Server(
        directory,
        account,
        f"mariadb+asyncmy://root@127.0.0.1:{port}/test",
        [str(daemon), *options, *mariadb.settings(directory, port)],
        pid_file=directory / "pid",
        in_order=signal.SIGTERM,
        is_ready=lambda: len(answer_on(port)) > 0,
    )
