"""Ids of many processes: forked, killed, or in containers that look the same."""

import array
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from aaiclick.id_grants import RANDOM_MACHINE_IDS, Grant
from tests.support import warm
from tests.support.ids import HOUR_S, NOON, NOON_MS, HandClock, assert_rising, machine_of, slots_maker

PROJECT = Path(__file__).parents[1]


def python(code: str, root: Path, *arguments: object) -> subprocess.Popen[bytes]:
    """A Python process with that local root, whose input and output are pipes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AAICLICK_", "POSTGRES_"))}
    env |= {"AAICLICK_LOCAL_ROOT": str(root), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return warm.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ids_in(files: list[Path]) -> list[int]:
    found = array.array("q")
    for file in files:
        found.frombytes(file.read_bytes())
    return found.tolist()


def assert_unique(made: list[int], count: int) -> None:
    made.sort()
    assert len(made) == count
    assert_rising(made)


MAKE_MANY = """
import array, sys
from aaiclick.ids import new_id, new_ids
print("ready", flush=True)
sys.stdin.readline()
made = []
for _ in range(100):
    made += new_ids(1000)
    made += [new_id() for _ in range(1000)]
open(sys.argv[1], "wb").write(array.array("q", made).tobytes())
"""


def test_eight_processes_make_200_000_ids_each_and_share_none(tmp_path: Path):
    files = [tmp_path / f"{each}.ids" for each in range(8)]
    processes = [python(MAKE_MANY, tmp_path / "root", file) for file in files]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:  # all at once
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert_unique(ids_in(files), 8 * 200_000)


FORK = """
import array, os, sys, threading
from aaiclick.ids import new_id, new_ids
keep = lambda made: open(f"{sys.argv[1]}/{os.getpid()}.ids", "wb").write(array.array("q", made).tobytes())
made = new_ids(5000)
busy = threading.Thread(target=lambda: [new_id() for _ in range(300_000)], daemon=True)
busy.start()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        below = os.fork()
        keep([new_id() for _ in range(1000)] + new_ids(9000))
        if below:
            os.waitpid(below, 0)
        os._exit(0)
    children.append(child)
made += new_ids(15_000)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
busy.join()
keep(made)
"""


def test_forked_children_repeat_neither_their_parent_nor_each_other(tmp_path: Path):
    process = python(FORK, tmp_path / "root", tmp_path)
    process.communicate(timeout=60)
    assert process.returncode == 0
    files = list(tmp_path.glob("*.ids"))
    assert len(files) == 9
    assert_unique(ids_in(files), 20_000 + 8 * 10_000)


HOLD = """
import sys
from pathlib import Path
from tests.support.ids import HandClock, slots_maker
maker = slots_maker(Path(sys.argv[1]), HandClock(), range(1))
print(maker.many(int(sys.argv[2]))[-1], flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("count", [1, 50_000])
def test_a_killed_process_leaves_a_slot_that_goes_on_above_its_ids(tmp_path: Path, count: int):
    process = python(HOLD, tmp_path / "root", tmp_path / "slots", count)
    assert process.stdout is not None
    last = int(process.stdout.readline())
    assert machine_of(slots_maker(tmp_path / "slots", HandClock(), range(1)).one()) in RANDOM_MACHINE_IDS
    process.send_signal(signal.SIGKILL)
    process.communicate()
    next_one = slots_maker(tmp_path / "slots", HandClock(NOON - timedelta(hours=1)), range(1)).one()
    assert machine_of(next_one) == machine_of(last) == 0
    assert next_one > last


CONTAINER = """
import array, os, socket, sys
from pathlib import Path
os.getpid, socket.gethostname = (lambda: 1), (lambda: "app")
from aaiclick.ids import IdMaker
from tests.support.ids import HandClock, slots_maker
from tests.test_ids_across_processes import NaiveSource
clock = HandClock()
maker = IdMaker(NaiveSource(), clock=clock) if sys.argv[1] == "naive" else slots_maker(Path(sys.argv[2]), clock)
open(sys.argv[3], "wb").write(array.array("q", maker.many(5000)).tobytes())
print("done", flush=True)
sys.stdin.readline()
"""


class NaiveSource:
    """The tempting way: a machine id made from the pid."""

    def grant(self, at_ms: int) -> Grant:
        from_ms = NOON_MS
        return Grant(os.getpid() % 1024, from_ms, from_ms + HOUR_S * 1000)

    def forget(self) -> None: ...


def ids_of_two_containers(way: str, tmp_path: Path) -> list[int]:
    """Two processes that see the same host name, the same pid and the same time."""
    files = [tmp_path / f"{each}.ids" for each in range(2)]
    containers = [python(CONTAINER, tmp_path / "root", way, tmp_path / "slots", file) for file in files]
    for container in containers:
        assert container.stdout is not None
        assert container.stdout.readline() == b"done\n"
    for container in containers:
        container.communicate(b"end\n")
    return ids_in(files)


def test_machine_ids_from_pids_repeat_in_containers(tmp_path: Path):
    """What the next test guards against does happen."""
    made = ids_of_two_containers("naive", tmp_path)
    assert len(made) == 10_000
    assert len(set(made)) == 5_000


def test_containers_with_the_same_host_name_and_pid_share_no_id(tmp_path: Path):
    assert_unique(ids_of_two_containers("slots", tmp_path), 10_000)
