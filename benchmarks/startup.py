"""What it costs to start: CPU milliseconds of `aaiclick --help`, beside those of Python itself and of its parser.

Run: python -m benchmarks.startup
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

from benchmarks.setting import machine

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    'python -c "import typer"': ["-c", "import typer"],
    "aaiclick --help": ["-m", "aaiclick", "--help"],
    "aaiclick job list --help": ["-m", "aaiclick", "job", "list", "--help"],
}


def cpu_ms(arguments: list[str]) -> float:
    """The processor time of one process and its children, by the operating system's account."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():  # the first start compiles and reads from disk
        cpu_ms(arguments)
    for _ in range(rounds):  # in turns, so that whatever else the machine does meets all of them
        for name, arguments in COMMANDS.items():
            times[name].append(cpu_ms(arguments))
    medians = {name: statistics.median(found) for name, found in times.items()}
    python, parser_ms = list(medians.values())[:2]
    print(machine())
    print("| command | CPU ms, median | times Python | times Python with typer |\n|---|---|---|---|")
    for name, median in medians.items():
        print(f"| `{name}` | {median:.0f} | {median / python:.1f} | {median / parser_ms:.1f} |")


if __name__ == "__main__":
    main()
