"""One fleet for a local root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.cli.local.lock import FILE, only_fleet_of
from aaiclick.errors import ConfigError

HOLDER = """
import sys, time
from pathlib import Path
from aaiclick.cli.local.lock import only_fleet_of
with only_fleet_of(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_told_who_has_it(tmp_path: Path) -> None:
    with only_fleet_of(tmp_path):
        with pytest.raises(ConfigError) as refused, only_fleet_of(tmp_path):
            pass
        assert f"runs there already (process {os.getpid()})" in str(refused.value)
        assert refused.value.exit_code == 2
    with only_fleet_of(tmp_path):
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=f"process {holder.pid}"), only_fleet_of(tmp_path):
            pass
        holder.kill()
    with only_fleet_of(tmp_path):
        pass


def test_one_that_has_not_said_who_it_is(tmp_path: Path) -> None:
    with only_fleet_of(tmp_path):
        (tmp_path / FILE).write_text("")
        with pytest.raises(ConfigError, match="still starting"), only_fleet_of(tmp_path):
            pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="symbolic link"), only_fleet_of(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
