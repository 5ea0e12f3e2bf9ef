"""Hosts of a test's own: who reaches whom, and what is left behind."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import hosts
from tests.servers.hosts import Host, Network
from tests.support.proxy import Proxy

ROOT = Path(__file__).parents[2]


@pytest.fixture
def there(hosts_there: None) -> Iterator[Network]:
    with hosts.network() as made:
        yield made


def greet(listening: socket.socket) -> None:
    while True:
        try:
            asked, _ = listening.accept()
        except OSError:
            return
        with asked:
            asked.sendall(b"hello")


def is_heard(host: Host, to: Host, port: int, patience_s: float) -> bool:
    try:
        with host.connect(to, port, patience_s) as asked:
            return asked.recv(9) == b"hello"
    except OSError:
        return False


def test_hosts_reach_each_other_until_something_is_cut(there: Network) -> None:
    one, two, server = there.add(), there.add(), there.add()
    listening = server.listen()
    port = listening.getsockname()[1]
    threading.Thread(target=greet, args=[listening], daemon=True).start()

    def reach_it(*hosts: Host) -> None:
        for host in (one, two):
            assert is_heard(host, server, port, 30.0 if host in hosts else 0.2) == (host in hosts)

    try:
        reach_it(one, two)
        there.lose(one, server)
        reach_it(two)
        there.restore()
        there.lose(server, one)
        reach_it(two)
        there.restore()
        there.cut(two)
        reach_it(one)
        there.mend(two)
        reach_it(one, two)
        there.cut(server)
        reach_it()
    finally:
        listening.close()


async def test_what_listens_on_a_host_is_the_way_to_what_is_outside(there: Network) -> None:
    """So hosts reach servers that run beside the test; a silence on the way ends with what was sent meanwhile."""

    async def greets(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    outside = await asyncio.start_server(greets, "127.0.0.1", 0)
    database, server = there.add(), there.add()
    relay = Proxy("127.0.0.1", outside.sockets[0].getsockname()[1])
    port = await relay.open(database.listen())
    there.part(server, database)
    assert not await asyncio.to_thread(is_heard, server, database, port, 0.2)
    trying = asyncio.create_task(asyncio.to_thread(is_heard, server, database, port, 60.0))
    await asyncio.sleep(0.1)
    there.restore()
    assert await trying
    await relay.close()
    outside.close()


def test_nothing_is_left_behind(hosts_there: None) -> None:
    """What runs there is killed, be it that the test ends or that it is killed itself."""
    before = hosts.taken()
    with hosts.network() as there:
        sleeper = subprocess.Popen(there.add().command("sleep", "60"))
        assert len(hosts.taken()) == len(before) + 2
    assert sleeper.wait() == -signal.SIGKILL
    assert hosts.taken() == before


def test_what_a_killed_test_left_goes_before_the_next(hosts_there: None) -> None:
    script = (
        "import subprocess, time\nfrom tests.servers.hosts import network\n"
        "with network() as there:\n"
        "    asleep = subprocess.Popen(there.add().command('sleep', '60'))\n"
        "    print(asleep.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout
        sleeper = int(killed.stdout.readline())
        killed.kill()
    left = [name for name in hosts.taken() if name.startswith(f"{hosts.PREFIX}-{killed.pid}-")]
    assert len(left) == 2
    hosts.sweep()
    assert not {*left} & {*hosts.taken()}
    status = Path(f"/proc/{sleeper}/status")
    assert not status.exists() or "zombie" in status.read_text()


def test_without_rights_or_programs_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "find_program", lambda *names: None)
    hosts.can_run.cache_clear()
    try:
        assert not hosts.can_run()
    finally:
        hosts.can_run.cache_clear()
