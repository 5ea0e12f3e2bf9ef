"""The nursery: a small process with all imports done and nothing open, which forks the children that run bodies.

A forked child is ready in a few milliseconds, and inherits no connection, thread or lock of the worker. When the worker
has ended, for whatever reason, the nursery kills all children and the processes they left behind, and ends.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress

from aaiclick.config import settings
from aaiclick.module_path import search_in
from aaiclick.orchestration.execution.executors.child_process import child
from aaiclick.orchestration.execution.executors.shared_times import SharedTimes
from aaiclick.orchestration.execution.executors.wire import Born, Died, Fork, Inbox, Ready, Signal, Spare, receive, send

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_S = 1.0
"""How often the shared times are read."""
GOODBYE_S = 5.0
"""How long to wait at the end for the remaining processes to die."""


class Nursery:
    """Forks and signals children at the worker's request, reaps dead ones, and enforces the cut-off."""

    def __init__(self, line: socket.socket, page: SharedTimes) -> None:
        self.line = line
        self.page = page
        self.spared: set[int] = set()
        """Pids of children whose runs go on when the worker is cut off."""
        self.asked_for = self.killed_for = float("inf")
        """The values of `kill_at` for which children were last interrupted, and killed, so that each is done once."""
        self.children: set[int] = set()
        self.inbox = Inbox()
        self.selector = selectors.DefaultSelector()
        self.fds: list[int] = []
        self.woken, self.waker = os.pipe()
        for end in (self.woken, self.waker):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Serve until the worker closes the line or dies."""
        self.selector.register(self.line, selectors.EVENT_READ)
        self.selector.register(self.woken, selectors.EVENT_READ)
        send(self.line, Ready())
        while True:
            for key, _ in self.selector.select(self.stop_cut_off()):
                if key.fd == self.woken:
                    os.read(self.woken, 4096)
                elif not self.obey():
                    return
            self.bury()

    def stop_cut_off(self) -> float:
        """Interrupt and then kill the runs that must not outlast the cut-off: the worker may be paused.

        Return how many seconds to wait before the next check.
        """
        kill_at, now = self.page.kill_at, time.monotonic()
        tell_at = self.page.ask_at + (kill_at - self.page.ask_at) / 3 if kill_at < float("inf") else kill_at
        stopped = self.children - self.spared
        if now >= kill_at and self.killed_for != kill_at:
            self.killed_for = kill_at
            for pid in stopped:
                signal_group(pid, signal.SIGKILL)
        elif now >= tell_at and self.asked_for != kill_at:
            self.asked_for = kill_at
            for pid in stopped:
                signal_group(pid, signal.SIGTERM)
        due = [at for at, done in ((tell_at, self.asked_for), (kill_at, self.killed_for)) if done != kill_at]
        return min([LOOK_S, *(max(0.0, at - now) for at in due)])

    def obey(self) -> bool:
        """Carry out the worker's messages. Return False when the worker has gone."""
        data, fds = receive(self.line)
        self.fds += fds
        for message in self.inbox.feed(data):
            match message:
                case Fork(serial=serial):
                    send(self.line, self.fork(serial, self.fds.pop(0)))
                case Signal(pid=pid, number=number):
                    if pid in self.children:
                        signal_group(pid, number)
                case Spare(pid=pid, spared=spared):
                    (self.spared.add if spared else self.spared.discard)(pid)
        return bool(data)

    def fork(self, serial: int, fd: int) -> Born:
        """Fork a child that uses this descriptor as its line to the worker."""
        nursery_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(fd)
            return Born(serial, 0, str(error))
        if pid == 0:
            self._become_child(fd, nursery_pid)
        os.close(fd)
        self.children.add(pid)
        return Born(serial, pid)

    def _become_child(self, fd: int, nursery_pid: int) -> None:
        """Turn the forked process into a child. Never returns."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            self.selector.close()
            self.line.close()
            os.close(self.woken)
            os.close(self.waker)
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
            if os.getppid() == nursery_pid:  # else the nursery died before PR_SET_PDEATHSIG took effect
                child.main(socket.socket(fileno=fd), self.page)
        except BaseException:  # a child must never return into the nursery's code
            traceback.print_exc()
        finally:
            os._exit(os.EX_SOFTWARE)

    def bury(self) -> None:
        """Reap dead processes, tell the worker which children have died, and kill what they left behind."""
        try:
            while (died := bury_one(self.children)) is not None:
                if died.pid in self.children:
                    self.children.remove(died.pid)
                    self.spared.discard(died.pid)
                    send(self.line, died)
        except ChildProcessError:
            return
        self.sweep()

    def sweep(self) -> None:
        """Kill the processes adopted from dead children, whatever process group they are in."""
        for pid in adopted(self.children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def clear(self) -> None:
        """Kill all children and adopted processes, and reap them, for at most `GOODBYE_S` seconds."""
        for pid in self.children:
            signal_group(pid, signal.SIGKILL)
        deadline = time.monotonic() + GOODBYE_S
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    self.sweep()
                    time.sleep(0.001)
            except ChildProcessError:
                return


def bury_one(own: set[int]) -> Died | None:
    """Reap one dead process; None if there is none. If it is in `own`, kill the rest of its process group.

    This is done before reaping where the system allows: until then the group's id cannot be reused. Raises
    ChildProcessError if there are no child processes at all.
    """
    if hasattr(os, "waitid"):
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None and found.si_pid in own:
            signal_group(found.si_pid, signal.SIGKILL)
        return None if found is None else Died(*os.waitpid(found.si_pid, 0))
    died = Died(*os.waitpid(-1, os.WNOHANG))  # macOS before Python 3.13
    if died.pid in own:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(died.pid, signal.SIGKILL)
    return died if died.pid else None


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a child and its process group. A child that was just forked may have no group of its own yet."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    except PermissionError:  # the remaining processes of the group run as another user
        pass


def adopted(own: set[int]) -> Sequence[int]:
    """Return the child processes that are not in `own`; none where the system does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            found = [int(pid) for pid in file.read().split()]
    except OSError:
        return ()
    return [pid for pid in found if pid not in own]


def _prctl(option: int, value: int) -> None:
    if LINUX:
        _libc.prctl(option, value, 0, 0, 0)


def _open_stdio() -> None:
    """Open /dev/null as descriptors 0, 1 and 2 where they are closed: a worker may have been started without them."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def main(fd: int, page_fd: int, app_dir: str) -> None:
    """Run the nursery for the worker at the other end of `fd`.

    `page_fd` is the memory of the SharedTimes. `app_dir` is searched last for the user's modules.
    """
    _open_stdio()
    if app_dir:
        search_in(app_dir)
    settings()
    nursery = Nursery(socket.socket(fileno=fd), SharedTimes(page_fd))
    os.set_inheritable(page_fd, False)
    nursery.line.set_inheritable(False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # `_launch` blocks some, and the worker's own parent may have too
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(nursery.waker, warn_on_full_buffer=False)
    faulthandler.enable(2)
    gc.collect()
    gc.freeze()
    try:
        with suppress(ConnectionError):  # the worker has gone
            nursery.serve()
    finally:
        nursery.clear()


_libc = ctypes.CDLL(None, use_errno=True) if LINUX else ctypes.CDLL(None)

if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
