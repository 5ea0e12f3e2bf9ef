"""A server of a test's own, to be stopped and started again on its port: databases with their data, Redis empty."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from redis import Redis

from tests.servers import mariadb, postgres, redis
from tests.servers.process import (
    answer_on,
    free_port,
    private_directory,
    run_once,
    serving,
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


class RedisProcess:
    """A Redis that can be killed and started again, and has then forgotten everything."""

    def __init__(self, directory: Path, account: str, port: int) -> None:
        self._directory, self._account, self.port = directory, account, port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = redis.find_programs()
        how = redis.command(program, self._directory, self.port)
        self._process = start(how, directory=self._directory, account=self._account, stop_signal=signal.SIGKILL)
        wait_until_ready(self._process, partial(redis.is_ready, self.port), self._directory / "server.log")

    def kill(self) -> None:
        if self._process is not None:
            stop(self._process)  # by SIGKILL
            self._process = None
            self._directory.mkdir(exist_ok=True)  # its guard removes it
            if self._account:
                shutil.chown(self._directory, self._account)


@contextmanager
def restartable_redis(*, is_up: bool = True) -> Iterator[RedisProcess]:
    """A Redis on a port of its own."""
    account = unprivileged_account("redis")
    with private_directory(account) as directory:
        server = RedisProcess(directory, account, free_port())
        if is_up:
            server.start()
        try:
            yield server
        finally:
            server.kill()


class Watched:
    """A Redis with a replica, which Sentinels watch."""

    SERVICE = "ours"

    def __init__(self, master: RedisProcess, sentinel_ports: list[int]) -> None:
        self._master, self._ports = master, sentinel_ports

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"redis+sentinel://{hosts}/{self.SERVICE}"

    def kill_master(self) -> None:
        self._master.kill()

    def fail_over(self) -> None:
        """Let another server lead although this one is well."""
        with Redis(host="127.0.0.1", port=self._ports[0]) as sentinel:
            sentinel.execute_command("SENTINEL", "FAILOVER", self.SERVICE)


@contextmanager
def sentinels() -> Iterator[Watched]:
    """A server, its replica, and three Sentinels that agree on who leads; what one loses, the other takes over."""
    account = unprivileged_account("redis")
    with ExitStack() as stack:
        master = stack.enter_context(restartable_redis())
        replica = stack.enter_context(restartable_redis())
        with Redis(host="127.0.0.1", port=replica.port) as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
        ports = [stack.enter_context(_sentinel(account, master.port)) for _ in range(3)]
        _until_known(ports)
        yield Watched(master, ports)


@contextmanager
def _sentinel(account: str, master_port: int) -> Iterator[int]:
    with private_directory(account) as directory:
        file = directory / "sentinel.conf"
        file.write_text(
            f"sentinel monitor {Watched.SERVICE} 127.0.0.1 {master_port} 2\n"
            f"sentinel down-after-milliseconds {Watched.SERVICE} 1000\n"
            f"sentinel failover-timeout {Watched.SERVICE} 5000\n"
        )
        if account:
            shutil.chown(file, account)
        program = str(redis.find_programs())
        listening = ("--bind", "127.0.0.1", "--dir", str(directory))
        with serving(
            lambda port: [program, str(file), "--sentinel", "--port", str(port), *listening],
            directory=directory,
            account=account,
            stop_signal=signal.SIGKILL,
            is_ready=redis.is_ready,
        ) as port:
            yield port


def _until_known(ports: list[int]) -> None:
    """Wait until each Sentinel knows the replica and the other Sentinels: before, none can lead a failover."""
    for port in ports:
        with Redis(host="127.0.0.1", port=port) as sentinel:
            known: Any = {}
            for _ in range(600):
                known = sentinel.sentinel_master(Watched.SERVICE)
                if known["num-slaves"] == 1 and known["num-other-sentinels"] == len(ports) - 1:
                    break
                time.sleep(0.1)
            else:
                raise AssertionError(f"the Sentinel on port {port} does not find the others: {known}")
