"""A process that is forked warm finds what one that is really started finds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is really started")

LOOKS = """
import json, locale, os, signal, sys, tempfile, threading
json.dump({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": globals().get("__file__"),
    "flags": sys.flags.safe_path,
    "streams": [[s.encoding, s.errors, s.mode, s.name, s.line_buffering, s.write_through, s.fileno()]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "cwd": os.getcwd(), "umask": os.umask(0), "parent": os.getppid(), "alone": os.getpid() == os.getsid(0),
    "group": os.getpgrp() if os.getpgrp() != os.getpid() else "own", "environment": dict(os.environ),
    "signals": {int(n): str(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
    "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
    "threads": threading.active_count(), "main": threading.current_thread() is threading.main_thread(),
    "fds": sorted(os.listdir("/proc/self/fd")), "bytecode": sys.dont_write_bytecode, "temp": tempfile.gettempdir(),
    "said": sys.stdin.read(),
}, sys.stdout, default=str)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def really_run(*given: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", warm.RealPopen)
        return subprocess.run(*given, **options)


def both(*command: str, **options: Any) -> list[subprocess.CompletedProcess[str]]:
    """What comes of a command that is really started, and of one that is forked."""
    runs: tuple[Run, Run] = really_run, warm.run
    return [run([sys.executable, *command], text=True, capture_output=True, **options) for run in runs]


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was forked."""
    asked: list[dict[str, Any]] = []
    spawn = warm.Server.spawn

    def remembering(self: warm.Server, request: dict[str, Any], fds: list[int]) -> int:
        asked.append(request)
        return spawn(self, request, fds)

    monkeypatch.setattr(warm.Server, "spawn", remembering)
    return asked


@pytest.mark.parametrize("flags", [[], ["-P"], ["-u"]], ids=" ".join)
@pytest.mark.parametrize("program", ["-c", "-m", "file"])
@pytest.mark.parametrize("session", [False, True])
def test_it_finds_what_it_would_have_found(
    tmp_path: Path, forked: list[dict[str, Any]], program: str, flags: list[str], session: bool
) -> None:
    (tmp_path / "looks.py").write_text(LOOKS)
    called = {"-c": ["-c", LOOKS], "-m": ["-m", "looks"], "file": ["looks.py"]}[program]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "X": "é", "TMPDIR": str(tmp_path)}
    real, ours = both(
        *[*flags, *called, "a", "b c"], cwd=tmp_path, env=environment, start_new_session=session, input="told"
    )
    assert (real.returncode, real.stderr) == (ours.returncode, ours.stderr) == (0, "")
    assert json.loads(real.stdout) | {"environment": None} == json.loads(ours.stdout) | {"environment": None}
    seen = [json.loads(each.stdout)["environment"] for each in (real, ours)]
    assert seen[0] == seen[1] | ({"LC_CTYPE": "C.UTF-8"} if "LC_CTYPE" in seen[0] else {})
    assert len(forked) == 1


def test_signals_that_are_ignored_or_blocked_and_the_umask_are_handed_on() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN), os.umask(0o077)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        real, ours = (json.loads(each.stdout) for each in both("-c", LOOKS, stdin=subprocess.DEVNULL))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        signal.signal(signal.SIGHUP, before[0])
        os.umask(before[1])
    for what in ("signals", "blocked", "umask"):
        assert real[what] == ours[what]
    assert (ours["umask"], int(signal.SIGUSR1) in ours["blocked"]) == (0o077, True)


@pytest.mark.parametrize(
    "code",
    [
        *("1/0", "raise SystemExit", "raise SystemExit(3)", "raise SystemExit('why')", "raise KeyboardInterrupt"),
        *("import os; os._exit(7)", "import os; os.abort()", "import os; os.kill(os.getpid(), 9)"),
        *("import atexit; atexit.register(print, 'last')", "class C:\n def __del__(self): print('gone')\nx = C()"),
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.05), print('joined'))).start()",
        "def f(): raise ValueError('é')\ntry: f()\nexcept ValueError as e: raise RuntimeError from e",
        *("raise SystemExit(300)", "raise SystemExit(-1)", "raise SystemExit(True)", "import sys; sys.stdout.close()"),
        "import sys; sys.stdout = open('/dev/full', 'w'); print(1)",
        "import atexit\nclass F:\n def __repr__(s): return 'F'\n def __call__(s): 1/0\natexit.register(F())",
        "class C:\n def __del__(self): print('gone')\nx = C(); x.itself = x",
        "class C:\n def __del__(self): print(_first)\n_first = 1; x = C()",
        "class C:\n def __del__(self): print(_first)\nimport sched; _first = 1; sched.held = C()",
        "class C: pass\nimport weakref; x = C(); weakref.finalize(x, print, 'final')",
        "import os; where = open('/dev/stdout', 'w'); print('unflushed', file=where)",
        "import os\nif os.fork() == 0: raise SystemExit(3)\nprint(os.wait()[1] >> 8)",
    ],
)
def test_it_ends_as_it_would_have_ended(forked: list[dict[str, Any]], code: str) -> None:
    real, ours = both("-c", code)
    assert (real.returncode, real.stdout, real.stderr) == (ours.returncode, ours.stdout, ours.stderr)
    assert len(forked) == 1


@pytest.mark.parametrize("module", ["executors.nursery", "executors.child", "main"])
def test_a_module_that_is_imported_already_begins_as_ever(forked: list[dict[str, Any]], module: str) -> None:
    real, ours = both("-P", "-m", f"aaiclick.orchestration.execution.{module}", "x")
    assert (real.returncode, len(real.stderr.splitlines())) == (ours.returncode, len(ours.stderr.splitlines()))
    assert "RuntimeWarning" not in ours.stderr
    assert len(forked) == 1


def test_it_is_our_child(forked: list[dict[str, Any]]) -> None:
    process = warm.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process.poll() is None
    process.communicate(b"\n")
    assert (process.returncode, len(forked)) == (0, 1)


def test_what_the_package_starts_of_itself_is_forked_too(forked: list[dict[str, Any]], tmp_path: Path) -> None:
    own = [sys.executable, "-P", "-m", "aaiclick", "--version"]
    assert subprocess.run(own, capture_output=True).returncode == 0
    assert len(forked) == 1
    code = f"import os, subprocess; subprocess.run({own}); print(subprocess.Popen.__name__)"
    assert warm.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("OwnPopen\n")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["-c", "import sys; print('aaiclick' in sys.modules)"], {}),
        (["-O", "-c", "print(False)"], {}),
        (["-c", "print(False)"], {"env": {"PYTHONHASHSEED": "1"}}),
        (["-c", "print(False)"], {"env": {"LC_ALL": "de_DE.ISO-8859-1"}}),
        (["-c", "print(False)"], {"preexec_fn": lambda: None}),
    ],
)
def test_what_cannot_be_imitated_is_really_started(
    forked: list[dict[str, Any]], command: list[str], options: dict[str, Any]
) -> None:
    assert warm.run([sys.executable, *command], capture_output=True, text=True, **options).stdout == "False\n"
    assert not forked


def test_a_test_may_want_real_starts(forked: list[dict[str, Any]], really_started: None) -> None:
    assert subprocess.run([sys.executable, "-P", "-m", "aaiclick", "--version"], capture_output=True).returncode == 0
    assert not forked


def test_what_a_process_of_the_same_number_has_left_is_no_hindrance() -> None:
    """Numbers of processes come again: in a long run a place was taken by one that had ended long ago."""
    server = warm.server_here()
    assert server is not None
    newest = subprocess.Popen(["true"])
    newest.wait()
    places = (Path(server.address).with_name(str(newest.pid + number)) for number in range(1, 3_000))
    left = [place for place in places if not place.exists()]
    for place in left:
        place.touch()
    try:
        done = warm.run([sys.executable, "-c", "print(5)"], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("5\n", "")
    finally:
        for place in left:
            place.unlink(missing_ok=True)
