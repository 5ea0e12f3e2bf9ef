"""The server of `warm`: it has one thread, no connection and nothing of the tests, and forks what is asked for.

    warm_server.py ADDRESS

Standard input is the leash: it closes when whoever started this is gone. It is run by file name.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import itertools
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import weakref
from contextlib import suppress
from typing import Any

import warm  # type: ignore[import-not-found]  # beside this file

BASE_PATH = sys.path[1:]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

COMMANDS = (
    *(f"jobs.{name}" for name in ("backfills", "dlq", "graph", "history", "job", "logs", "registered_job", "run_job")),
    *("jobs.task", *(f"admin.{name}" for name in ("data", "doctor", "metrics", "migrate", "parent_process", "prune"))),
    *("local", *(f"admin.{name}" for name in ("server", "setup", "token", "worker"))),
)
IMPORTED = (
    *("aaiclick.cli", *(f"aaiclick.cli.{name}" for name in COMMANDS)),
    *("aaiclick.orchestration.context", "aaiclick.orchestration.jobs"),
    *("aaiclick.orchestration.coordinator.direct", "aaiclick.orchestration.bus", "aaiclick.data.front"),
    *("aaiclick.orchestration.execution.executors.process", "aaiclick.data.gateway", "aaiclick.data.lineage"),
    *("aaiclick.orchestration.launchers.worker_main", "aaiclick.orchestration.execution.executors.child_process.child"),
    *("aaiclick.orchestration.launchers.debug", "aaiclick.orchestration.decorators", "aaiclick.data.context"),
    *("aaiclick.orchestration.store.schema", "alembic.command", "alembic.migration", "alembic.operations"),
    *("aaiclick.server.app", "aaiclick.server.mcp.endpoint", "asyncpg", "asyncmy", "redis.asyncio", "rich.table"),
    *("aaiclick.data.gateway", "clickhouse_connect", "pyarrow.compute", "pyarrow.pandas_compat"),
)
"""What commands import, and what comes with the first Object. The embedded engine is not among it, nor is anything
that starts a thread.
"""

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FLAGS = sys.flags
KEPT = {*sys.builtin_module_names, "__main__", "os", "io", "codecs", "encodings", "abc", "site", "threading", "weakref"}
"""Modules that Python takes apart itself."""


def next_order(address: str) -> dict[str, Any]:
    """Serve. Returns in a new process, which is as it was asked for, with what it shall do."""
    listener, leash = listening(address), True
    os.write(0, b"+")
    while True:
        request, fds = forked(listener, leash)
        warm.was_forked, warm.server = True, None
        become(request, fds)
        if not starts_others(request["called"]):
            return request
        # it starts processes of its own, which have to be its children: a server below it, as clean as this one
        address = os.path.join(os.path.dirname(address), str(os.getpid()))
        listener, leash = listening(address), False
        if os.fork():
            listener.close()
            warm.server = warm.Server(address, -1)
            return request
        become_server(listener.fileno())


def listening(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    with suppress(FileNotFoundError):
        os.unlink(address)  # of a process that had our number, and has ended
    listener.bind(address)
    listener.listen(64)
    return listener


def starts_others(called: dict[str, Any]) -> bool:
    """Whether a program may start processes of the package."""
    return called["kind"] != "-m" or (called["program"] == "aaiclick" and "start" in called["arguments"])


def become_server(listener: int) -> None:
    """Below a process that was forked: hold nothing of it, and end with it."""
    warm.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    call_it(warm.CALLED)
    place_descriptors([*[os.open(os.devnull, os.O_RDWR)] * 3, listener], [0, 1, 2, listener])
    leave_signals()


def leave_signals() -> None:
    """A server ends when its parent does, not with those to whom a signal is sent."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def forked(listener: socket.socket, leash: bool) -> tuple[dict[str, Any], list[int]]:
    """Fork whatever is asked for; returns in the new process. Standard input may be the leash."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    if leash:
        selector.register(0, selectors.EVENT_READ)
    while True:
        if 0 in {key.fd for key, _ in selector.select()}:
            os._exit(0)
        line, _ = listener.accept()
        request, fds = heard(line)
        told, telling = os.pipe()
        helper = os.fork()
        if helper == 0:
            helped = os.getpid()
            pid = os.fork()
            if pid:
                os.write(telling, str(pid).encode())
                os._exit(0)
            while os.getppid() == helped:  # until whoever asked is our parent
                time.sleep(0.0005)
            for opened in (selector, listener, line):
                opened.close()
            return request, fds
        os.waitpid(helper, 0)  # from here on whoever asked is the parent
        line.sendall(os.read(told, 64))
        line.close()
        for fd in (*fds, told, telling):
            os.close(fd)


def heard(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, fds, _, _ = socket.recv_fds(line, 8, 64)
    with line.makefile("rb") as rest:
        return json.loads(rest.read(int.from_bytes(head, "big"))), fds


def become(request: dict[str, Any], fds: list[int]) -> None:
    """Make of this process what the command would have found."""
    if os.getppid() != request["client"]:  # it is gone already
        os._exit(1)
    warm.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # nothing stays behind
    if request["session"]:
        os.setsid()
    elif os.getpgrp() != request["group"]:
        os.setpgid(0, request["group"])
    place_descriptors(fds, [0, 1, 2, *request["pass_fds"]])
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    tempfile.tempdir = None
    call_it("python")
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    called, environment = request["called"], request["env"]
    sys.orig_argv = request["command"]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:] = search_path(called, environment)
    sys.flags = FLAGS
    if "-P" in called["flags"]:
        flags = {name: getattr(FLAGS, name) for name in dir(FLAGS) if not name.startswith("_")}
        sys.flags = types.SimpleNamespace(**flags | {"safe_path": True})  # type: ignore[assignment]
    open_streams(environment, "-u" in called["flags"] or bool(environment.get("PYTHONUNBUFFERED")))
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])


def call_it(name: str) -> None:
    """Give this process a name, as `ps` shows it."""
    warm.libc.prctl(PR_SET_NAME, ctypes.addressof(ctypes.create_string_buffer(name.encode())), 0, 0, 0)


def place_descriptors(fds: list[int], wanted: list[int]) -> None:
    """Give descriptors the numbers that are wanted; no others stay."""
    above = max(*fds, *wanted) + 1
    for number, fd in enumerate(fds):
        os.dup2(fd, above + number)
    for number, target in enumerate(wanted):
        os.dup2(above + number, target)  # one that is inherited further
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in wanted:
            with suppress(OSError):  # the one that lists them
                os.close(fd)


def search_path(called: dict[str, Any], environment: dict[str, str]) -> list[str]:
    """As Python makes it."""
    first = {"-m": os.getcwd(), "-c": "", "file": os.path.dirname(os.path.realpath(called["program"]))}[called["kind"]]
    said = environment.get("PYTHONPATH")
    places = [os.path.abspath(place) for place in said.split(os.pathsep)] if said else []
    rest = dict.fromkeys([*places, *BASE_PATH])
    return [*rest] if "-P" in called["flags"] else [first, *rest]


def open_streams(environment: dict[str, str], unbuffered: bool) -> None:
    """Streams over the standard descriptors, as Python opens them."""
    encoding, errors = warm.encoding_of(environment) or ("utf-8", "strict")
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        reading = name == "stdin"
        raw: Any = open(fd, "rb" if reading else "wb", -1 if reading or not unbuffered else 0, closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            raw,
            encoding,
            "backslashreplace" if name == "stderr" else errors,
            newline=None if reading else "\n",
            line_buffering=not unbuffered and (name == "stderr" or raw.isatty()),
            write_through=unbuffered,
        )
        getattr(stream.buffer, "raw", stream.buffer).name = f"<{name}>"
        stream.mode = "r" if reading else "w"  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def call(request: dict[str, Any]) -> None:
    """Run the program as the main module."""
    subprocess.Popen = warm.OwnPopen  # type: ignore[misc]
    called = request["called"]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = [called["program"] if called["kind"] == "file" else called["kind"], *called["arguments"]]
    sys.excepthook = show_exception
    if called["kind"] == "-m":
        if not hasattr(sys.modules.get(called["program"]), "__path__"):
            sys.modules.pop(called["program"], None)  # runpy would warn that it is there already
        runpy._run_module_as_main(called["program"])  # type: ignore[attr-defined]
        return
    main.__dict__["__builtins__"] = __builtins__
    text, file = called["program"], "<string>"
    if called["kind"] == "file":
        file = main.__file__ = os.path.abspath(called["program"])
        with open(file, "rb") as source:
            text = source.read()
    exec(compile(text, file, "exec"), main.__dict__)  # noqa: S102 (as Python itself does)


def call_and_end(request: dict[str, Any], ours: dict[str, types.ModuleType]) -> None:
    """Run the program, and end as Python would, which alone would take longer than many a command."""
    atexit.register(let_go_of, ours)
    known, code = len(sys.modules), 0
    try:
        call(request)
    except SystemExit as error:
        code = 0 if error.code is None else error.code  # type: ignore[assignment]
        if not isinstance(code, int):  # Python prints it
            raise
    if "chdb" not in sys.modules and threading.active_count() == 1:
        end(code, known)
    raise SystemExit(code)


def end(code: int, known: int) -> None:
    """What Python does at its end, with what the program itself has made; the rest goes with the process."""
    atexit.unregister(let_go_of)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    made = [*itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - known))]
    left = [weakref.ref(sys.modules.pop(name)) for name in dict.fromkeys(["__main__", *made])]
    gc.collect()
    for module in filter(None, (each() for each in left)):  # something else holds it
        names = [name for name in vars(module) if name != "__builtins__"]
        for name in sorted(names, key=lambda name: name[:1] != "_" or name[:2] == "__"):
            module.__dict__[name] = None
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
    os._exit(code & 0xFF)


def let_go_of(modules: dict[str, types.ModuleType]) -> None:
    """At the end, leave out of Python's taking apart what was there at the beginning.

    What the program itself has made is taken apart as ever.
    """
    for name in modules:
        sys.modules.pop(name, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(modules))


def show_exception(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    """As Python does, without the frames of this file."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    sys.__excepthook__(kind, error.with_traceback(traceback), traceback)


if __name__ == "__main__":
    call_it(warm.CALLED)
    leave_signals()
    sys.path[0] = ROOT
    for each in IMPORTED:
        importlib.import_module(each)
    assert len(os.listdir("/proc/self/task")) == 1, "something that is imported here starts a thread"
    assert "chdb" not in sys.modules
    importlib.invalidate_caches()
    sys.path_importer_cache.clear()  # nothing is known of directories that may change until a program is asked for
    sys.modules["_warm"] = sys.modules.pop("warm")
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] not in KEPT}
    gc.collect()
    gc.freeze()
    call_and_end(next_order(sys.argv[1]), loaded)
