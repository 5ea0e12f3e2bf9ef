"""Bodies that need a process of their own: they die, or must be killed, or spoil whatever they can reach."""

from __future__ import annotations

import contextvars
import ctypes
import multiprocessing
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

from aaiclick.orchestration.execution.runs.current import get_current_run
from tests.support.bodies import touch

WHERE = contextvars.ContextVar("where", default="nowhere")


def who() -> list[object]:
    main = threading.current_thread() is threading.main_thread()
    return [os.getpid(), main, os.getsid(0) == os.getpid()]


def sleeps_with_finally(path: str) -> None:
    touch(f"{path}.began", str(os.getpid()))
    try:
        time.sleep(3600)
    finally:
        touch(f"{path}.stopped")


def spins(path: str) -> None:
    """Uses a processor, and ignores whatever can be ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number not in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            signal.signal(number, signal.SIG_IGN)
    touch(f"{path}.began", str(os.getpid()))
    while True:
        try:
            while True:
                pass
        except BaseException as error:
            del error


def exits(code: int) -> None:
    sys.stdout.write("last words\n")
    os._exit(code)


def signals_itself(number: int) -> None:
    print("last words", flush=True)
    os.kill(os.getpid(), number)
    time.sleep(3600)


def reads_nowhere() -> None:
    ctypes.string_at(0)


def takes_all_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**30, hard))
    hoard = []
    while True:
        hoard.append(bytearray(2**26))


def takes_memory(megabytes: int) -> int:
    HOARD.append(b"x" * (megabytes * 1_000_000))
    return os.getpid()


HOARD: list[object] = []


def square(number: int) -> int:
    return number * number


def uses_processes(method: str) -> list[int]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        return list(pool.map(square, [1, 2, 3]))


def ends_a_process_of_its_own() -> int | None:
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
    process.start()
    process.terminate()
    process.join()
    return process.exitcode


def forks_and_returns() -> int:
    os.fork()
    return os.getpid()


def leaves_grandchildren(path: str) -> None:
    """One in the group, one in a session of its own, one whose parent is gone."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)"]
    first = subprocess.Popen(sleeper)
    second = subprocess.Popen(sleeper, start_new_session=True)
    third, written = os.pipe()
    if os.fork() == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            time.sleep(3600)
        os.write(written, str(pid).encode())
        os._exit(0)
    orphan = int(os.read(third, 100))
    touch(path, f"{os.getpid()} {first.pid} {second.pid} {orphan}")


def leaves_grandchildren_and_waits(path: str) -> None:
    leaves_grandchildren(f"{path}.part")
    os.replace(f"{path}.part", path)
    time.sleep(3600)


def leaves_a_writer() -> int:
    """A process that writes to the log for ever, out of reach of the group."""
    print("before")
    script = "while True: print('x' * 1000, flush=True)"
    return subprocess.Popen([sys.executable, "-c", script], start_new_session=True).pid


def leaks_descriptors(count: int) -> int:
    HOARD.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))
    return os.getpid()


def closes_stdio(kind: str) -> str:
    print("before")
    if kind == "descriptors":
        for fd in (0, 1, 2):
            os.close(fd)
    elif kind == "streams":
        sys.stdout.close()
        sys.stderr.close()
    elif kind == "none":
        sys.stdout = sys.stderr = sys.stdin = None
    else:
        os.close(1)
        assert open(os.devnull).fileno() == 1  # noqa: SIM115
    return kind


def closes_everything() -> None:
    os.closerange(3, 1000)


def reads_stdin() -> str:
    return sys.stdin.read() + os.read(0, 10).decode()


def output(megabytes: int) -> None:
    line = b"x" * 999 + b"\n"
    for _ in range(megabytes):
        sys.stdout.buffer.write(line * 1000)
    print("the end")


def speaks_below() -> None:
    """Output that does not pass through Python's streams."""
    os.write(1, b"by descriptor\n")
    subprocess.run(["echo", "by a process"], check=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"by C")
    libc.fflush(None)


def binary() -> None:
    sys.stdout.buffer.write(bytes(range(256)))


def changes_surroundings() -> None:
    WHERE.set("changed")
    os.environ["CHANGED"] = "yes"
    os.environ.pop("PATH")
    os.chdir("/")
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM})
    signal.setitimer(signal.ITIMER_REAL, 0.2)


def surroundings() -> list[object]:
    return [
        os.getpid(),
        WHERE.get(),
        "CHANGED" in os.environ,
        "PATH" in os.environ,
        os.getcwd() == "/",
        signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN,
        signal.getsignal(signal.SIGTERM) is signal.SIG_IGN,
        len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        signal.getitimer(signal.ITIMER_REAL)[0],
    ]


def lowers_its_limits() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard))
    return os.getpid()


def writes_to_the_line() -> None:
    """Garbage on every socket that can be found, also the one to the worker."""
    for fd in range(3, 100):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                socket.socket(fileno=os.dup(fd)).send(b"\xff" * 100)
        except OSError:
            continue
    time.sleep(3600)


def kills_its_group() -> None:
    os.killpg(0, signal.SIGKILL)


def leaves_by_the_door() -> None:
    sys.exit(3)


def asks_on_a_thread() -> list[object]:
    seen: list[object] = []

    def ask() -> None:
        run = get_current_run()
        seen.extend([run.name, run.log_path])

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return seen
