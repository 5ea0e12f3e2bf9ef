"""`aaiclick data serve`"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from aaiclick.cli.admin import data
from aaiclick.config import reset_settings
from aaiclick.data.embedded.directory_lock import acquire, find_gateway
from tests.cli.conftest import Cli
from tests.support import warm


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aaiclick", "data", "serve", *arguments]
    return warm.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(root: Path, how: signal.Signals) -> None:
    process = start("--port", "0")
    assert process.stderr is not None
    said = process.stderr.readline()
    found = find_gateway(root / "chdb_data", 0)
    assert found is not None
    assert said == f"aaiclick: serving {root / 'chdb_data'} at {found.url} and {found.tcp}\n"
    assert found.pid == process.pid
    assert urllib.request.urlopen(f"{found.tcp}/ping").read() == b"Ok.\n"  # noqa: S310 (our own address)
    process.send_signal(how)
    _, rest = process.communicate()
    assert (process.returncode, rest) == (0, "")
    assert find_gateway(root / "chdb_data", 0) is None


def test_it_ends_when_nobody_asks(cli: Cli, root: Path) -> None:
    served = cli("data", "serve", "--idle-exit", "0")
    assert (served.code, served.out) == (0, "")
    assert served.err.startswith(f"aaiclick: serving {root / 'chdb_data'} at unix://")
    assert not (root / "chdb_data.gateway").exists()


def test_it_serves_another_directory(cli: Cli, tmp_path: Path) -> None:
    assert cli("data", "serve", "--path", str(tmp_path / "mine"), "--idle-exit", "0").code == 0
    assert (tmp_path / "mine").is_dir()


def test_a_directory_that_is_owned_is_not_served_twice(cli: Cli, tmp_path: Path) -> None:
    with acquire(tmp_path / "mine"):  # type: ignore[union-attr]
        refused = cli("data", "serve", "--path", str(tmp_path / "mine"))
    assert refused.code == 5
    assert f"process {os.getpid()} owns it" in refused.err


def test_with_wait_it_serves_when_it_is_its_turn(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    with acquire(directory):  # type: ignore[union-attr]
        process = start("--path", str(directory), "--wait")
        assert process.stderr is not None
        assert f"waiting for {directory}: process {os.getpid()} owns it" in process.stderr.readline()
    assert f"serving {directory}" in process.stderr.readline()
    process.terminate()
    assert (process.communicate()[1], process.returncode) == ("", 0)


def test_it_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    with acquire(tmp_path / "mine"):  # type: ignore[union-attr]
        process = start("--path", str(tmp_path / "mine"), "--wait")
        assert process.stderr is not None
        assert "waiting" in process.stderr.readline()
        process.terminate()
        assert (process.communicate()[1], process.returncode) == ("", 0)


def test_a_server_is_not_served(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_CH_URL", "clickhouse://default:secret@host:8123/default")
    reset_settings()
    refused = cli("data", "serve")
    assert refused.code == 2
    assert "secret" not in refused.err


def test_the_verb_must_be_named(cli: Cli) -> None:
    assert cli("data").code == 2


def test_who_was_told_to_end_is_not_killed_by_being_told_again() -> None:
    before = {number: signal.getsignal(number) for number in data.SIGNALS}
    try:
        with data._signals():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    with data._signals():
        assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in data.SIGNALS} == before
