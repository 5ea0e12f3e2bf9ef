"""kill -9 of the process that owns the engine, in the middle of inserts: what was acknowledged is there, once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import clickhouse_connect
from clickhouse_connect.driver.exceptions import Error

from aaiclick.data.clients.unix_socket import pool_of
from aaiclick.data.embedded.directory_lock import Endpoint, find_gateway
from tests.support import warm

WRITERS = 4
ROWS = 500
KILLS = 3
ACKNOWLEDGED_BEFORE_A_KILL = 12

TABLE = """
CREATE TABLE batches (writer UInt32, batch UInt32, row UInt32) ENGINE = MergeTree ORDER BY (writer, batch, row)
SETTINGS non_replicated_deduplication_window = 10000
"""


class Owner:
    """A process that serves the directory, which may be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "aaiclick", "data", "serve", "--path", str(self.directory)]
        self.process = warm.Popen(command, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        assert b"serving" in self.process.stderr.readline()
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate()


def connect(endpoint: Endpoint) -> Any:
    assert endpoint.socket is not None
    return clickhouse_connect.get_client(
        host="localhost",
        port=80,
        username=endpoint.user,
        password=endpoint.password,
        autogenerate_session_id=False,
        pool_mgr=pool_of(endpoint.socket),
    )


class Writer(threading.Thread):
    """Inserts batches, each again with the same token until it is acknowledged."""

    def __init__(self, number: int, directory: Path, last: threading.Event) -> None:
        super().__init__()
        self.number = number
        self.directory = directory
        self.last = last
        self.acknowledged: list[int] = []
        self.repeated = 0

    def run(self) -> None:
        batch = 0
        while not self.last.is_set():
            self.insert(batch)
            self.acknowledged.append(batch)
            batch += 1

    def insert(self, batch: int) -> None:
        rows = [[self.number, batch, row] for row in range(ROWS)]
        settings = {"insert_deduplication_token": f"{self.number}-{batch}"}
        while True:
            endpoint = find_gateway(self.directory, 60, expected=True)
            assert endpoint is not None
            try:
                client = connect(endpoint)
                client.insert("batches", rows, column_names=["writer", "batch", "row"], settings=settings)
            except (Error, OSError):
                self.repeated += 1
                continue
            client.close()
            return


def test_what_was_acknowledged_before_a_kill_is_there_once(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    owner, last = Owner(directory), threading.Event()
    endpoint = find_gateway(directory, 0)
    assert endpoint is not None
    connect(endpoint).command(TABLE)
    writers = [Writer(number, directory, last) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for kill in range(1, KILLS + 1):
        while sum(len(writer.acknowledged) for writer in writers) < kill * ACKNOWLEDGED_BEFORE_A_KILL:
            time.sleep(0.001)
        owner.kill()
        owner.start()
    last.set()
    for writer in writers:
        writer.join()

    endpoint = find_gateway(directory, 0)
    assert endpoint is not None
    found = connect(endpoint).query("SELECT writer, batch, count(), uniqExact(row) FROM batches GROUP BY 1, 2")
    owner.end()
    stored = Counter({(writer, batch): count for writer, batch, count, _ in found.result_rows})
    acknowledged = {(writer.number, batch) for writer in writers for batch in writer.acknowledged}
    assert set(stored) == acknowledged
    assert set(stored.values()) == {ROWS}
    assert {unique for *_, unique in found.result_rows} == {ROWS}
    assert sum(writer.repeated for writer in writers) > 0


def test_a_batch_that_was_stored_but_not_acknowledged_is_not_stored_twice(tmp_path: Path) -> None:
    """The token is remembered by the table, on disk: it counts after a restart, too."""
    directory = tmp_path / "data"
    owner = Owner(directory)
    settings = {"insert_deduplication_token": "same"}
    for _ in range(2):
        endpoint = find_gateway(directory, 0)
        assert endpoint is not None
        client = connect(endpoint)
        client.command(TABLE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        client.insert("batches", [[1, 1, 1]], column_names=["writer", "batch", "row"], settings=settings)
        owner.kill()
        owner.start()
    endpoint = find_gateway(directory, 0)
    assert endpoint is not None
    assert connect(endpoint).command("SELECT count() FROM batches") == 1
    owner.end()
