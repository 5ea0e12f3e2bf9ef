"""One process owns a directory; the others find where it serves it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.data.embedded.directory_lock import Endpoint, Ownership, acquire, find_gateway, owner_pid
from aaiclick.errors import EngineUnavailable
from tests.support import warm

OWNER = """
import sys
from pathlib import Path
from aaiclick.data.embedded.directory_lock import Endpoint, acquire
owned = acquire(Path(sys.argv[1]))
if owned and len(sys.argv) > 2:
    import os
    owned.publish(Endpoint("http://127.0.0.1:1", "default", "secret", os.getpid()))
print(owned is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "above" / "data"


@pytest.fixture
def owned(directory: Path) -> Iterator[Ownership]:
    found = acquire(directory)
    assert found is not None
    yield found
    found.release()


class Process:
    """Another process that tries to own the directory."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-c", OWNER, *arguments]
        self.inner = warm.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.inner.stdout is not None
        self.owns = self.inner.stdout.readline() == "True\n"

    def kill(self) -> None:
        self.inner.send_signal(signal.SIGKILL)
        self.inner.communicate()


@pytest.fixture
def process(directory: Path) -> Iterator[Process]:
    """The owner, which has published where it listens."""
    found = Process(str(directory), "publish")
    yield found
    found.kill()


def endpoint(**facts: object) -> Endpoint:
    return Endpoint(**{"url": "http://127.0.0.1:1", "user": "default", "password": "s", "pid": os.getpid(), **facts})  # type: ignore[arg-type]


def beside(directory: Path, ending: str) -> Path:
    return directory.with_name(directory.name + ending)


def test_one_process_owns_a_directory(owned: Ownership, directory: Path) -> None:
    other = Process(str(directory))
    assert not other.owns
    other.kill()
    assert owner_pid(directory) == os.getpid()


def test_the_same_process_owns_it_once(owned: Ownership, directory: Path) -> None:
    assert acquire(directory) is None
    assert acquire(directory.parent / "." / "data") is None


def test_after_a_release_another_may_own_it(owned: Ownership, directory: Path) -> None:
    owned.release()
    owned.release()
    assert owner_pid(directory) is None
    with acquire(directory) as again:  # type: ignore[union-attr]
        assert again.directory == directory.resolve()


def test_the_lock_of_a_killed_owner_is_free(process: Process, directory: Path) -> None:
    assert process.owns
    assert acquire(directory) is None
    process.kill()
    heir = acquire(directory)
    assert heir is not None
    heir.release()


def test_everything_is_for_its_user_only(owned: Ownership, directory: Path) -> None:
    owned.publish(endpoint())
    files = (beside(directory, ".lock"), beside(directory, ".gateway"))
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert [stat.S_IMODE(place.stat().st_mode) for place in (directory, directory.parent)] == [0o700, 0o700]


def test_a_directory_that_others_could_read_is_closed_to_them(directory: Path) -> None:
    directory.mkdir(parents=True, mode=0o755)
    with acquire(directory):  # type: ignore[union-attr]
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_gateway_is_found(owned: Ownership, directory: Path) -> None:
    owned.publish(endpoint())
    assert find_gateway(directory, 0) == endpoint()
    owned.withdraw()
    assert find_gateway(directory, 0) is None


def test_without_an_owner_there_is_no_gateway_to_wait_for(directory: Path) -> None:
    assert find_gateway(directory, 3600) is None
    acquire(directory).release()  # type: ignore[union-attr]
    assert find_gateway(directory, 3600) is None


def test_an_owner_that_is_starting_is_waited_for(owned: Ownership, directory: Path) -> None:
    found: list[Endpoint | None] = []
    thread = threading.Thread(target=lambda: found.append(find_gateway(directory, 60)))
    thread.start()
    owned.publish(endpoint())
    thread.join()
    assert found == [endpoint()]


def test_an_owner_that_was_sent_for_is_waited_for(directory: Path) -> None:
    found: list[Endpoint | None] = []
    thread = threading.Thread(target=lambda: found.append(find_gateway(directory, 60, expected=True)))
    thread.start()
    with acquire(directory) as owned:  # type: ignore[union-attr]
        owned.publish(endpoint())
        thread.join()
    assert found == [endpoint()]
    assert find_gateway(directory, 0, expected=True) is None


def test_what_a_killed_owner_said_is_not_believed(process: Process, directory: Path) -> None:
    found = find_gateway(directory, 0)
    assert found is not None
    assert found.pid == process.inner.pid
    process.kill()
    assert beside(directory, ".gateway").exists()
    assert find_gateway(directory, 0) is None


def test_a_new_owner_is_not_taken_for_the_old_one(process: Process, directory: Path) -> None:
    left = beside(directory, ".gateway").read_text()
    process.kill()
    with acquire(directory):  # type: ignore[union-attr]
        assert not beside(directory, ".gateway").exists()
        beside(directory, ".gateway").write_text(left)
        beside(directory, ".gateway").chmod(0o600)
        assert find_gateway(directory, 0) is None


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"url": 1}', "null", '{"pid": 1'])
def test_a_file_that_says_nothing_is_not_believed(owned: Ownership, directory: Path, said: str) -> None:
    owned.publish(endpoint())
    beside(directory, ".gateway").write_text(said)
    assert find_gateway(directory, 0) is None


def test_a_file_that_others_could_write_is_not_believed(owned: Ownership, directory: Path) -> None:
    owned.publish(endpoint())
    beside(directory, ".gateway").chmod(0o666)
    assert find_gateway(directory, 0) is None


def test_symbolic_links_are_not_followed(owned: Ownership, directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text(json.dumps({"url": "http://evil", "user": "u", "password": "p", "pid": os.getpid()}))
    target.chmod(0o600)
    beside(directory, ".gateway").symlink_to(target)
    assert find_gateway(directory, 0) is None
    owned.publish(endpoint())
    assert "evil" in target.read_text()
    assert not beside(directory, ".gateway").is_symlink()


def test_a_lock_that_is_a_symbolic_link_is_refused(directory: Path, tmp_path: Path) -> None:
    directory.mkdir(parents=True)
    beside(directory, ".lock").symlink_to(tmp_path / "target")
    with pytest.raises(EngineUnavailable, match="symbolic link"):
        acquire(directory)
    assert not (tmp_path / "target").exists()


def test_a_lock_that_is_no_file_is_refused(directory: Path) -> None:
    directory.mkdir(parents=True)
    os.mkfifo(beside(directory, ".lock"))
    with pytest.raises(EngineUnavailable, match="not a file of this user"):
        acquire(directory)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineUnavailable, match="Not a directory"):
        acquire(tmp_path / "file" / "data")


def test_a_forked_child_does_not_keep_the_lock(directory: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from aaiclick.data.embedded.directory_lock import acquire
owned = acquire(Path({str(directory)!r}))
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""
    parent = warm.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert int(parent.stdout.readline())
    assert parent.wait() == 0  # the child lives on
    heir = acquire(directory)
    assert heir is not None
    heir.release()
    parent.communicate("")


def test_the_password_is_not_shown() -> None:
    assert "hidden" not in repr(endpoint(password="hidden"))


def test_what_is_no_directory_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    file.chmod(0o644)
    with pytest.raises(EngineUnavailable, match="not a directory"):
        acquire(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_directory_with_other_things_in_it_keeps_its_rights(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "theirs").touch()
    shared.chmod(0o755)
    owned = acquire(shared)
    assert owned is not None
    owned.release()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
