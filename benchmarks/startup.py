"""What it costs to start: CPU milliseconds of commands, and of a whole fleet until it is of use, beside Python's own.

The fleet is `aaiclick local start` with two workers, until the server is ready and both are live: all of its processes.

Run: python -m benchmarks.startup [--rounds 20] [--fleets 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from tempfile import TemporaryDirectory

import psutil

from aaiclick.orchestration import list_workers
from aaiclick.orchestration.connections import connected
from benchmarks.local import ready, until
from benchmarks.setting import machine

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    'python -c "import typer"': ["-c", "import typer"],
    "aaiclick --help": ["-m", "aaiclick", "--help"],
    "aaiclick job list --help": ["-m", "aaiclick", "job", "list", "--help"],
    "aaiclick job list": ["-m", "aaiclick", "job", "list"],
}
FLEET = "aaiclick local start, until ready"
WORKERS = 2
WAIT_S_MAX = 120.0


def cpu_ms(arguments: list[str]) -> float:
    """The processor time of one process and its children, by the operating system's account."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


async def fleet_ms() -> float:
    """The processor time of a fleet until it is of use."""
    command = ("-m", "aaiclick", "local", "start", "--json", "--port", "0", "--workers", str(WORKERS))
    running = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    try:
        assert running.stdout is not None
        begins = json.loads(await running.stdout.readline())
        async with asyncio.timeout(WAIT_S_MAX):
            await ready(begins["server"])
            await until(_all_live)
        fleet = psutil.Process(running.pid)
        times = [process.cpu_times() for process in (fleet, *fleet.children(recursive=True))]
        running.send_signal(signal.SIGINT)
        await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
    return sum(each.user + each.system for each in times) * 1000


async def _all_live() -> bool:
    async with connected():
        return len(await list_workers("active")) == WORKERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--fleets", type=int, default=5)
    given = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in (*COMMANDS, FLEET)}
    with TemporaryDirectory() as place:
        os.environ["AAICLICK_LOCAL_ROOT"] = place
        os.environ.pop("AAICLICK_SQL_URL", None)
        cpu_ms(["-m", "aaiclick", "setup"])
        for arguments in COMMANDS.values():  # the first start compiles and reads from disk
            cpu_ms(arguments)
        for _ in range(given.rounds):  # in turns, so that whatever else the machine does meets all of them
            for name, arguments in COMMANDS.items():
                times[name].append(cpu_ms(arguments))
        for _ in range(given.fleets):
            times[FLEET].append(asyncio.run(fleet_ms()))
    medians = {name: statistics.median(found) for name, found in times.items() if found}
    python, parser_ms = list(medians.values())[:2]
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    print("| command | CPU ms, median | times Python | times Python with typer |\n|---|---|---|---|")
    for name, median in medians.items():
        print(f"| `{name}` | {median:.0f} | {median / python:.1f} | {median / parser_ms:.1f} |")


if __name__ == "__main__":
    main()
