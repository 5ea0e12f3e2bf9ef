"""Hosts of a test's own: network namespaces on one router, which can be cut off whole or in one direction.

    with network() as there:
        one, other = there.add(), there.add()
        there.lose(one, other)   # what `one` sends to `other` vanishes on its way, and nobody is told
        there.cut(one)           # its link is down

A process enters a host by `Host.command`, a Python program by `Host.variables` and ENTER. The namespaces carry the id
of the process that made them: what one that was killed left behind goes before the next are made. Run as a module, it
installs what is missing; its exit code says whether namespaces can be made here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from .programs import find_program, install_packages

PACKAGES = {"debian": "iproute2", "homebrew": "iproute2mac"}
TRIES_MAX = 5
PREFIX = "aaiclick-test"
PLACE = Path("/run/netns")
ROUTER = "router"
HOSTS_MAX = 200
CLONE_NEWNET = 0x40000000

VARIABLE = "TEST_NAMESPACE"
ENTER = f"""
import ctypes, os, runpy
with open(os.environ["{VARIABLE}"]) as namespace:
    if ctypes.CDLL(None).setns(namespace.fileno(), {CLONE_NEWNET}):
        raise SystemExit("this process cannot enter " + namespace.name)
runpy.run_module("aaiclick", run_name="__main__", alter_sys=True)
"""
"""A program for `python -c`: the command `aaiclick`, on a host."""


@dataclass(frozen=True)
class Host:
    """A host, and the address that the others reach it at."""

    namespace: str
    number: int

    @property
    def address(self) -> str:
        return f"10.77.{self.number}.2"

    @property
    def variables(self) -> dict[str, str]:
        """What ENTER reads."""
        return {VARIABLE: str(PLACE / self.namespace)}

    def command(self, *command: str) -> list[str]:
        """This command, on the host; it takes the place of `nsenter`, whose id it keeps."""
        return ["nsenter", f"--net={PLACE / self.namespace}", "--", *command]

    def listen(self, port: int = 0) -> socket.socket:
        """A socket of this process that listens on the host."""
        return self._made(lambda: socket.create_server((self.address, port)))

    def connect(self, to: Host, port: int, timeout_s: float) -> socket.socket:
        """A connection of this process from the host to another."""
        return self._made(lambda: socket.create_connection((to.address, port), timeout_s))

    def _made(self, make: Callable[[], socket.socket]) -> socket.socket:
        """A socket stays on the host that its thread was on when it was made."""

        def enter() -> socket.socket:
            with open(PLACE / self.namespace) as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            return make()

        with ThreadPoolExecutor(1) as thread:  # which never comes back from there
            return thread.submit(enter).result()


class Network:
    """A router, and the hosts around it."""

    def __init__(self) -> None:
        self._mark = mark_of(psutil.Process())
        self._made: list[str] = []
        self._lost: set[tuple[Host, Host]] = set()
        self.router = self._namespace(ROUTER)
        run(["nsenter", f"--net={PLACE / self.router}", "--", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])

    def _namespace(self, name: str) -> str:
        full = f"{self._mark}-{len(taken()):d}-{name}"
        ip("netns", "add", full)
        self._made.append(full)
        ip("-n", full, "link", "set", "lo", "up")
        return full

    def add(self) -> Host:
        """One more host."""
        number = len(self._made)
        assert number < HOSTS_MAX
        host = Host(self._namespace("host"), number)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        ip("-n", self.router, "link", "add", f"to{number}", *peer)
        for namespace, link, last in ((self.router, f"to{number}", 1), (host.namespace, "eth0", 2)):
            ip("-n", namespace, "addr", "add", f"10.77.{number}.{last}/24", "dev", link)
            ip("-n", namespace, "link", "set", link, "up")
        ip("-n", host.namespace, "route", "add", "default", "via", f"10.77.{number}.1")
        return host

    def cut(self, host: Host) -> None:
        """Take its link down, at the router's end: the host itself sees nothing but silence."""
        ip("-n", self.router, "link", "set", f"to{host.number}", "down")

    def mend(self, host: Host) -> None:
        ip("-n", self.router, "link", "set", f"to{host.number}", "up")

    def lose(self, sender: Host, receiver: Host) -> None:
        """Lose what one sends to the other from now on; what comes back still arrives."""
        self._rule("add", sender, receiver)
        self._lost.add((sender, receiver))

    def part(self, one: Host, other: Host) -> None:
        """Lose all between two, and nothing else."""
        self.lose(one, other)
        self.lose(other, one)

    def restore(self) -> None:
        """Lose nothing any more."""
        for sender, receiver in self._lost:
            self._rule("del", sender, receiver)
        self._lost.clear()

    def _rule(self, verb: str, sender: Host, receiver: Host) -> None:
        ip("-n", self.router, "rule", verb, "from", sender.address, "to", receiver.address, "blackhole")

    def close(self) -> None:
        for namespace in self._made:
            remove(namespace)


@contextmanager
def network() -> Iterator[Network]:
    """A network of hosts; whatever still runs there is killed at the end."""
    sweep()
    made = Network()
    try:
        yield made
    finally:
        made.close()


@cache
def can_run() -> bool:
    """Whether namespaces can be made here."""
    if sys.platform != "linux" or os.geteuid() != 0 or not (find_program("ip") and find_program("nsenter")):
        return False
    for _ in range(TRIES_MAX):  # another process may be trying, or sweeping, at the same moment
        try:
            with network() as there:
                there.lose(there.add(), there.add())
            return True
        except (OSError, subprocess.CalledProcessError):
            time.sleep(0.3)
    return False


# ---------------------------------------------------------------- what is there, and what goes


def mark_of(process: psutil.Process) -> str:
    """How the namespaces of a process begin; ids of processes are used again, their times of birth are not."""
    return f"{PREFIX}-{process.pid}-{int(process.create_time())}"


def taken() -> list[str]:
    """The namespaces of all tests."""
    return sorted(each.name for each in PLACE.glob(f"{PREFIX}-*"))


def sweep() -> None:
    """Remove what processes left that were killed."""
    for namespace in taken():
        owner = int(namespace.removeprefix(f"{PREFIX}-").partition("-")[0])
        with suppress(psutil.NoSuchProcess):
            if namespace.startswith(f"{mark_of(psutil.Process(owner))}-"):
                continue
        remove(namespace)


def remove(namespace: str) -> None:
    """Kill what runs there, and remove it with its links."""
    with suppress(subprocess.CalledProcessError):  # another has just swept it
        for pid in ip("netns", "pids", namespace).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        ip("netns", "del", namespace)


def ip(*words: str) -> str:
    return run([*program(), *words])


@cache
def program() -> list[str]:
    return [str(find_program("ip"))]


def run(command: list[str]) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def main() -> int:
    if find_program("ip") is None:
        install_packages(**PACKAGES)
    return 0 if can_run() else 1


if __name__ == "__main__":
    sys.exit(main())
