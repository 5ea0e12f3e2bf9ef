"""What reaches stdout: data, whole, and harmless."""

import io
import os
import pty
import sys
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest

from aaiclick.cli import output


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], str]:
    """Runs something with a terminal in the place of stdout, and tells what was written to it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(show: Callable[[], None]) -> str:
        with redirect_stdout(Terminal()) as screen:
            show()
        return screen.getvalue()

    return run


def test_without_stderr_nothing_is_said_among_the_data(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # as Python has it after 2>&-
    output.say("not data")
    assert capsys.readouterr().out == ""


def test_off_a_terminal_a_table_is_lines_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(["id", "name"], [(1, "x" * 500), (2, None)])
    assert capsys.readouterr().out == f"id\tname\n1\t{'x' * 500}\n2\t\n"


def test_what_would_break_a_line_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(["name"], [("a\tb\nc\x1b[31m\u202e",)])
    assert capsys.readouterr().out == "name\na\\tb\\nc\\x1b[31m\\u202e\n"


def test_json_off_a_terminal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_json({"name": "café\n\x1b"})
    assert capsys.readouterr().out == '{"name": "café\\n\\u001b"}\n'


def test_json_on_a_terminal_is_indented(on_terminal) -> None:
    assert on_terminal(lambda: output.show_json({"name": "café"})) == '{\n  "name": "café"\n}\n'


def test_json_on_a_terminal_does_not_steer_it(on_terminal) -> None:
    shown = on_terminal(lambda: output.show_json("\x9b2J\x1b[2J\u202e\x7f\U000e0001"))
    assert shown == '"\\u009b2J\\u001b[2J\\u202e\\u007f\\udb40\\udc01"\n'


def test_json_where_the_encoding_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", narrow)
    output.show_json({"name": "café"})
    assert narrow.buffer.getvalue() == b'{"name": "caf\\u00e9"}\n'


def test_on_a_terminal_a_long_name_is_folded_not_cut(on_terminal) -> None:
    shown = on_terminal(lambda: output.show_table(["id", "name"], [(1, "x" * 150)]))
    assert shown.count("x") == 150
    assert "\x1b[1m" in shown


def test_no_color_is_honoured(on_terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(lambda: output.show_table(["id"], [(1,)]))
    assert "id" in shown
    assert "\x1b" not in shown


def test_a_name_is_not_markup(on_terminal) -> None:
    assert "[red]etl[/red]" in on_terminal(lambda: output.show_table(["name"], [("[red]etl[/red]",)]))


def test_a_column_is_not_markup_either(on_terminal) -> None:
    shown = on_terminal(lambda: output.show_table(["[red]etl\x1b[2J"], [(1,)]))
    assert "[red]etl\\x1b[2J" in shown


def test_a_real_terminal_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w") as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        assert output.is_terminal()
    os.close(ours)


def test_without_stdout_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not output.is_terminal()
    output.show_json({})


def test_facts_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_facts({"id": 1, "error": None, "name": "report"})
    assert capsys.readouterr().out == "id     1\nerror\nname   report\n"
