"""`aaiclick task logs`, `aaiclick job logs`"""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from aaiclick.backend import get_db_url, get_logs_dir
from aaiclick.cli.jobs import log_printing
from aaiclick.orchestration import cancel_job
from tests.cli.conftest import Cli
from tests.cli.jobs.test_task import submit
from tests.cli.test_output import Terminal
from tests.migrations.pictures import run


def write(task_id: int, data: bytes, epoch: int | None = None) -> None:
    name = f"{task_id}.log" if epoch is None else f"{task_id}.{epoch}.log"
    (Path(get_logs_dir()) / name).write_bytes(data)


def test_the_log_of_a_task(cli: Cli) -> None:
    first, second = submit()
    write(first.id, b"one\ntwo\nthree")
    assert cli("task", "logs", str(first.id)) == (0, "one\ntwo\nthree", "")
    assert cli("task", "logs", str(first.id)[-10:], "--tail", "2").out == "two\nthree"
    assert cli("task", "logs", str(first.id), "--tail", "0").out == ""
    shown = cli("task", "logs", str(first.id), "--tail", "1", "--json").data
    assert shown == {"task_id": str(first.id), "epoch": None, "text": "three", "size": 13, "begins_at": 8}
    nothing = cli("task", "logs", str(second.id))
    assert nothing == (0, "", "nothing was written yet, or the log is not in this log store\n")
    assert cli("task", "logs", str(second.id), "--json").data["text"] == ""


def test_the_log_of_an_attempt(cli: Cli) -> None:
    first, _ = submit()
    write(first.id, b"now", epoch=0)
    assert cli("task", "logs", str(first.id), "--epoch", "0").out == "now"
    missing = cli("task", "logs", str(first.id), "--epoch", "7")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err == f"aaiclick: No attempt at task {first.id} with epoch 7. No attempt at it has ended yet.\n"


def test_a_log_is_followed_to_the_end(cli: Cli) -> None:
    first, _ = submit()
    write(first.id, b"one\ntwo\n")
    asyncio.run(cancel_job(first.job_id or 0))
    assert cli("task", "logs", str(first.id), "--follow") == (0, "one\ntwo\n", "")
    assert cli("task", "logs", str(first.id), "-f", "--tail", "1").out == "two\n"
    assert cli("task", "logs", str(first.id), "-f", "--json").data == {"task_id": str(first.id), "text": "one\ntwo\n"}


def test_the_logs_of_a_job(cli: Cli) -> None:
    first, second = submit()
    write(first.id, b"1\n2")
    write(second.id, b"3\n")
    shown = cli("job", "logs", str(first.job_id))
    assert shown.out == f"==> first ({first.id}, pending) <==\n1\n2\n\n==> second ({second.id}, pending) <==\n3\n"
    lines = cli("job", "logs", str(first.job_id), "--json", "--tail", "1").out.splitlines()
    assert [(json.loads(line)["name"], json.loads(line)["text"]) for line in lines] == [
        ("first", "2"),
        ("second", "3\n"),
    ]


def test_only_of_those_that_failed(cli: Cli) -> None:
    first, second = submit()
    write(first.id, b"1\n")
    write(second.id, b"2\n")
    none = cli("job", "logs", str(first.job_id), "--failed")
    assert (none.code, none.out) == (0, "")
    asyncio.run(run(get_db_url(), f"UPDATE tasks SET status = 'failed' WHERE id = {second.id}"))
    assert cli("job", "logs", str(first.job_id), "--failed").out == f"==> second ({second.id}, failed) <==\n2\n"
    assert cli("job", "logs", str(first.job_id), "--failed", "--follow").code == 2


def test_the_logs_of_a_job_are_followed_to_its_end(cli: Cli) -> None:
    first, _ = submit()
    write(first.id, b"1\n")
    asyncio.run(cancel_job(first.job_id or 0))
    assert cli("job", "logs", str(first.job_id), "--follow").out == f"==> first ({first.id}, cancelled) <==\n1\n"


def test_who_wrote_nothing_is_counted(cli: Cli) -> None:
    first, _ = submit()
    assert cli("job", "logs", str(first.job_id)).err.startswith("2 tasks: nothing was written yet")


@pytest.mark.parametrize("typed", [("task", "logs"), ("job", "logs")])
def test_what_is_not_there(cli: Cli, typed: tuple[str, ...]) -> None:
    assert cli(*typed, "12345").code == 3
    assert cli(*typed, "x").code == 2
    assert cli(*typed, "12345", "--tail", "-1").code == 2


def test_files_and_pipes_get_the_bytes_as_they_are(cli: Cli) -> None:
    first, _ = submit()
    write(first.id, b"\x1b[31mred\x1b[0m\r\n\x00caf\xc3\xa9")
    assert cli("task", "logs", str(first.id)).out == "\x1b[31mred\x1b[0m\r\n\x00café"


def test_a_terminal_gets_nothing_that_could_steer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    printer = log_printing.Printer(False)
    printer.write(b"\x1b[2Jtop\ta\r\n\xc2\x9b31m[red]caf\xc3", 1)
    printer.write(b"\xa9\xff\n", 1)
    assert screen.getvalue() == "\\x1b[2Jtop\ta\n\\x9b31m[red]café\ufffd\n"


@pytest.mark.parametrize("character", ["é", "日", "😀"])
def test_a_character_may_come_in_two_halves(monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    data = character.encode()
    for cut in range(1, len(data)):
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        printer = log_printing.Printer(False)
        printer.write(b"a" + data[:cut], 1)
        printer.write(data[cut:] + b"z", 1)
        assert screen.getvalue() == f"a{character}z"


@pytest.mark.parametrize(("as_json", "shown"), [(False, "a\ufffd"), (True, '{"task_id": "1", "text": "\ufffd"}')])
def test_a_half_whose_other_half_never_comes_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, as_json: bool, shown: str
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    printer = log_printing.Printer(as_json)
    printer.write(b"a\xff", 1)
    printer.finish()
    printer.finish()
    assert " ".join(screen.getvalue().split()).endswith(shown.replace("{", "{ ").replace("}", " }"))
