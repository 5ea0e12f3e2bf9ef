"""How a command ends when it does not go well."""

import os
import signal
import subprocess
import sys

import pytest

from aaiclick.cli import errors
from aaiclick.cli.admin import setup
from aaiclick.config import reset_settings
from aaiclick.errors import AaiclickError, MissingExtra
from tests.cli.conftest import Cli
from tests.support import warm

PIPE = """
import sys
from aaiclick.cli import errors
sys.exit(errors.run(lambda: print("y\\n" * 1_000_000)))
"""
SLEEP = """
import sys, time
from aaiclick.cli import errors
sys.exit(errors.run(lambda: (print("on", flush=True), time.sleep(60))))
"""


def test_an_error_is_one_line_on_stderr(cli: Cli) -> None:
    refused = cli("job", "get", "12345")
    assert refused == (3, "", "aaiclick: No job with id 12345. See: aaiclick job list\n")


def test_debug_shows_the_traceback_too(cli: Cli) -> None:
    refused = cli("--debug", "job", "get", "12345")
    assert refused.code == 3
    assert refused.err.startswith("Traceback (most recent call last):\n")
    assert refused.err.splitlines()[-1] == "aaiclick: No job with id 12345. See: aaiclick job list"
    assert "Traceback" not in cli("job", "get", "12345").err


@pytest.mark.parametrize(
    "typed", [["frob"], ["job"], ["job", "frob"], ["job", "get"], ["job", "get", "1", "2"], ["job", "list", "--frob"]]
)
def test_wrong_use(cli: Cli, typed: list[str]) -> None:
    refused = cli(*typed)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("aaiclick: ")
    assert "--help)" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
@pytest.mark.parametrize("command", [["job", "list"], ["setup"], ["migrate"], ["migrate", "check"]])
def test_a_database_out_of_reach(cli: Cli, on_url, scheme: str, command: list[str]) -> None:
    on_url(f"{scheme}://user:hunter2@127.0.0.1:1/work")
    refused = cli(*command)
    assert (refused.code, refused.out) == (6, "")
    assert "user:***@127.0.0.1:1/work" in refused.err
    assert "hunter2" not in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [
        *(["job", verb, "12345"] for verb in ("get", "wait", "cancel", "retry", "stats", "logs", "graph")),
        *(["task", verb, "12345"] for verb in ("get", "why", "logs", "clear", "retry")),
        *(["worker", verb, "12345"] for verb in ("stop", "drain")),
        ["job", "get", "12345", "--watch"],
        ["job", "list", "--watch"],
        ["worker", "list", "--watch"],
        ["dlq", "list"],
        ["dlq", "replay", "12345"],
        ["token", "revoke", "12345"],
        ["run-job", "nightly"],
        ["registered-job", "list"],
    ],
    ids=" ".join,
)
def test_every_verb_says_that_the_database_is_out_of_reach(cli: Cli, on_url, command: list[str]) -> None:
    on_url("postgresql://user:hunter2@127.0.0.1:1/work")
    refused = cli(*command)
    assert (refused.code, refused.out) == (6, "")
    assert "hunter2" not in refused.err
    assert len(refused.err.splitlines()) == 1


def test_clickhouse_out_of_reach(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_CH_URL", "clickhouse://user:hunter2@127.0.0.1:1/work")
    reset_settings()
    for command in (["list"], ["show", "x"], ["query", "SELECT 1"], ["delete", "x", "--yes"]):
        refused = cli("data", *command)
        assert (refused.code, refused.out) == (6, "")
        assert "hunter2" not in refused.err
        assert len(refused.err.splitlines()) == 1


def test_a_wrong_setting(cli: Cli, on_url) -> None:
    on_url("postgrse://user:hunter2@127.0.0.1/work")
    refused = cli("job", "list")
    assert refused.code == 2
    assert "AAICLICK_SQL_URL" in refused.err
    assert "hunter2" not in refused.err


def failing(error: BaseException):
    def command() -> None:
        raise error

    return command


def test_what_we_did_not_expect_says_so_and_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert errors.run(failing(KeyError("gone"))) == 70
    assert capsys.readouterr().err == "aaiclick: KeyError: 'gone' (a bug in aaiclick; --debug shows the traceback)\n"


def test_each_class_has_its_exit_code() -> None:
    assert errors.run(failing(MissingExtra(what="PostgreSQL", package="asyncpg", extra="postgres"))) == 2
    for kind in AaiclickError.__subclasses__():
        assert errors.run(failing(kind())) == kind.exit_code


def test_control_codes_in_a_message_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    class Sneaky(AaiclickError):
        """{said}"""

    errors.run(failing(Sneaky(said="\x1b[31mred\nnext\u202e")))
    assert capsys.readouterr().err == "aaiclick: \\x1b[31mred next\\u202e\n"


def test_an_interrupted_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "wait_for", failing_wait)
    interrupted = cli("setup")
    assert (interrupted.code, interrupted.out) == (130, "")
    assert interrupted.err == "aaiclick: interrupted\n"


def failing_wait(work) -> None:
    work.close()
    raise KeyboardInterrupt


def test_ctrl_c_ends_with_130() -> None:
    process = start(SLEEP, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "aaiclick: interrupted\n")


def test_a_reader_that_has_seen_enough_gets_no_traceback() -> None:
    process = start(PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(30)) == ("", 141)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("typed", "code", "code_unheard"), [("list", 141, 141), ("get nope", 2, 2)])
def test_the_exit_code_counts_although_nobody_reads(
    root, unbuffered: str, typed: str, code: int, code_unheard: int
) -> None:
    """Not 1, which says that a job failed; typer has an answer of its own to a closed pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "aaiclick", "job", *typed.split()]
        around = environment() | {"PYTHONUNBUFFERED": unbuffered}
        unread = warm.run(command, env=around, stdout=writing, stderr=subprocess.PIPE, timeout=60)
        unheard = warm.run(command, env=around, stdout=subprocess.DEVNULL, stderr=writing, timeout=60)
    finally:
        os.close(writing)
    assert (unread.returncode, unheard.returncode) == (code, code_unheard)
    assert b"Traceback" not in unread.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_no_fault_of_ours(unbuffered: str) -> None:
    script = "from aaiclick.cli import errors, output; import sys; sys.exit(errors.run(lambda: output.show_text('x')))"
    around = environment() | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", script]
        ended = warm.run(command, env=around, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 74
    assert ended.stderr == "aaiclick: The output cannot be written: No space left on device\n"


def test_closed_stdout_and_odd_encodings() -> None:
    """A terminal that knows only ASCII gets escapes; a closed one gets nothing."""
    script = "from aaiclick.cli import errors, output; import sys; sys.exit(errors.run(lambda: output.show_text('é')))"
    process = start(script, PYTHONIOENCODING="ascii", stderr=subprocess.PIPE)
    assert process.communicate(timeout=30) == ("\\xe9\n", "")
    shell = ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, script]
    closed = warm.run(shell, env=environment(), capture_output=True, text=True, timeout=30)
    assert (closed.returncode, closed.stderr) == (0, "")


def start(script: str, *, stderr: int, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script]
    return warm.Popen(command, env=environment() | variables, stdout=subprocess.PIPE, stderr=stderr, text=True)


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
