"""The first seat on a local root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.cli.local.fleet_lock import FILE, Holder, lock_of
from aaiclick.errors import ConfigError

HOLDER = """
import sys, time
from pathlib import Path
from aaiclick.cli.local.fleet_lock import lock_of
with lock_of(Path(sys.argv[1])) as lock:
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_that_comes_second_knows_who_has_it_and_gets_it_after(tmp_path: Path) -> None:
    with lock_of(tmp_path) as second:
        pass
    with lock_of(tmp_path) as first:
        assert first.is_ours
        with lock_of(tmp_path) as second:
            assert (second.is_ours, second.take()) == (False, False)
            second.tell_server("http://not.ours")
            assert second.holder() == Holder(os.getpid(), None)
            first.tell_server("http://127.0.0.1:8765/api/v1")
            assert second.holder() == Holder(os.getpid(), "http://127.0.0.1:8765/api/v1")
            (tmp_path / FILE).write_text("")
            assert second.holder() == Holder()
        assert first.take()
    with lock_of(tmp_path) as third:
        assert third.is_ours
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with lock_of(tmp_path) as seat:
            assert seat.holder() == Holder(holder.pid)
            holder.kill()
            holder.wait()
            assert seat.take()
            assert seat.holder() == Holder(os.getpid())


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="symbolic link"), lock_of(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
