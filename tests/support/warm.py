"""Python processes that begin with the package imported: forked by a server, which has done so once.

    warm.run([sys.executable, "-m", "aaiclick", "job", "list"], env=..., cwd=..., capture_output=True)

`Popen` and `run` are those of `subprocess`; the process is a child of ours like any other. It is as the command would
have started it: arguments, environment, directory, search path, streams, descriptors, signals, session. It differs in
that modules are loaded already, which is why a test of what is imported, of how Python itself starts, or of a missing
package starts its processes by `subprocess`. What cannot be imitated is really started, too: see `request_of`.

The server is `warm_server`; this module is loaded there, too, for the processes that a process of its starts.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

IMITATED = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING"}
UTF_8 = ("utf-8", "utf8")
PR_SET_CHILD_SUBREAPER = 36
CALLED = "warm server"
"""As `ps` shows a server."""
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""With these in its environment, numpy and pyarrow start none when they are imported."""

libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
if libc is not None:
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

server: Server | None = None
"""That of this process."""
was_forked = False
"""Whether this process was forked by a server."""
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warm_server.py")
RealPopen = subprocess.Popen
_any_command = ContextVar("_any_command", default=False)
_spawning = threading.Lock()


class Popen(RealPopen):
    """A process that is forked warm where that makes no difference, else started as usual."""

    @staticmethod
    def may_be_forked(command: Sequence[str]) -> bool:
        """Whether a command may be forked, by the look of it."""
        return sys.platform == "linux" and command[0] == sys.executable

    def _execute_child(self, args: Any, *more: Any) -> None:
        names = RealPopen._execute_child.__code__.co_varnames  # type: ignore[attr-defined]
        asked = dict(zip(names[2:], more, strict=False))
        words = [args] if isinstance(args, str | bytes | os.PathLike) else args
        command = [os.fsdecode(word) for word in words]
        asked_server = server_here() if self.may_be_forked(command) else None
        request = None if asked_server is None else request_of(command, asked)
        if asked_server is None or request is None:
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        ends = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        fds = [standard if end == -1 else end for standard, end in enumerate(ends)]
        self.pid = asked_server.spawn(request, [*fds, *request["pass_fds"]])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in pipes))  # type: ignore[attr-defined]


class OwnPopen(Popen):
    """For the processes that the package itself starts, as `aaiclick.module_path.our_python` says."""

    @staticmethod
    def may_be_forked(command: Sequence[str]) -> bool:
        is_own = command[1:3] == ["-P", "-m"] and command[3].startswith("aaiclick")
        return Popen.may_be_forked(command) and (is_own or _any_command.get())


async def create_subprocess_exec(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """As asyncio's, which calls what `subprocess.Popen` is: in tests `OwnPopen`."""
    before = _any_command.set(True)
    try:
        return await asyncio.create_subprocess_exec(*command, **options)
    finally:
        _any_command.reset(before)


def run(command: Sequence[str], *, timeout: float | None = None, check: bool = False, **options: Any) -> Any:
    """Run a command to its end, as `subprocess.run` does."""
    given = options.pop("input", None)
    if given is not None:
        options["stdin"] = subprocess.PIPE
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


# ---------------------------------------------------------------- what is asked


def request_of(command: list[str], asked: dict[str, Any]) -> dict[str, Any] | None:
    """What the server is told; None for what it cannot imitate."""
    environment = dict(os.environ if asked["env"] is None else asked["env"])
    called = parsed(command[1:])
    cwd = os.fspath(asked["cwd"]) if asked["cwd"] is not None else None
    usual = (
        called is not None
        and all(isinstance(text, str) for pair in environment.items() for text in pair)
        and not {name for name in environment if name.startswith("PYTHON")} - IMITATED
        and encoding_of(environment) is not None
        and (cwd is None or os.access(cwd, os.X_OK))
        and asked["preexec_fn"] is None
        and asked["executable"] in (None, sys.executable)
        and all(asked[name] in (None, -1, False) for name in ("gid", "gids", "uid", "umask", "process_group", "shell"))
        and asked["close_fds"]
        and _is_program(called, cwd)
        and all(_is_open(fd) for fd, end in enumerate(("p2cread", "c2pwrite", "errwrite")) if asked[end] == -1)
    )
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return None
    if not usual:
        return None
    return {
        "command": command,
        "called": called,
        "env": environment,
        "cwd": os.path.join(here, cwd or ""),
        "pass_fds": sorted(asked["pass_fds"]),
        "session": bool(asked["start_new_session"]),
        "group": os.getpgrp(),
        "umask": current_umask(),
        "ignored": [int(each) for each in signal.valid_signals() if _is_ignored(each)],
        "blocked": [int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "client": os.getpid(),
    }


def _is_program(called: dict[str, Any], cwd: str | None) -> bool:
    """Whether it is a module, a text or a file; Python runs directories and archives in ways of their own."""
    return called["kind"] != "file" or os.path.splitext(os.path.join(cwd or "", called["program"]))[1] == ".py"


def parsed(words: list[str]) -> dict[str, Any] | None:
    """A command line of Python: flags, how its program is told, the program, its arguments; None for what is rare."""
    flags = []
    if any("sys.modules" in word or "addaudithook" in word for word in words):  # it asks what is loaded, or when
        return None
    while words and words[0] in ("-u", "-P"):
        flags.append(words[0])
        words = words[1:]
    if not words:
        return None
    if words[0] in ("-m", "-c"):
        return {"flags": flags, "kind": words[0], "program": words[1], "arguments": words[2:]}
    if words[0].startswith("-"):
        return None
    return {"flags": flags, "kind": "file", "program": words[0], "arguments": words[1:]}


def encoding_of(environment: dict[str, str]) -> tuple[str, str] | None:
    """Encoding and error handler of the standard streams; None unless it is UTF-8 or said in so many words."""
    said, _, errors = environment.get("PYTHONIOENCODING", "").partition(":")
    if said:
        return said, errors or "strict"
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "C")
    if locale in ("C", "POSIX", "C.UTF-8", "C.utf8"):
        return "utf-8", "surrogateescape"
    return ("utf-8", "strict") if locale.lower().endswith(UTF_8) else None


def current_umask() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _is_ignored(number: int) -> bool:
    return number not in (signal.SIGPIPE, signal.SIGXFSZ) and signal.getsignal(number) is signal.SIG_IGN


# ---------------------------------------------------------------- who asks


class Server:
    """A server of ours, and how it is asked."""

    def __init__(self, address: str, leash: int) -> None:
        self.address, self._leash = address, leash
        self.pid = os.getpid()

    def spawn(self, request: dict[str, Any], fds: list[int]) -> int:
        """Have a process forked; it is our child when this returns."""
        told = json.dumps(request).encode()
        with _spawning, socket.socket(socket.AF_UNIX) as line:
            line.connect(self.address)
            # the server's child, whose parent ends at once, becomes ours
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(line, [len(told).to_bytes(8, "big")], fds)
                line.sendall(told)
                pid = int(line.recv(64) or b"0")
            finally:
                libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        if not pid:
            raise RuntimeError("the server of warm processes has failed; what it met is on stderr")
        return pid


def server_here() -> Server | None:
    """The server of this process, started when it is first asked for; None where there is none, as in a fork."""
    global server
    with _spawning:
        if server is None and not was_forked:
            server = start_server()
    return server if server is not None and server.pid == os.getpid() else None


def start_server() -> Server:
    home = tempfile.mkdtemp(prefix="aaiclick-warm-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    address = os.path.join(home, "asked")
    ours, theirs = socket.socketpair()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AAICLICK_"))}
    with theirs:
        command = [sys.executable, SERVER, address]
        RealPopen(command, stdin=theirs.fileno(), stdout=2, env=env | NO_THREADS)
    if not ours.recv(1):
        raise RuntimeError("the server of warm processes did not start; what it met is on stderr")
    return Server(address, ours.detach())
