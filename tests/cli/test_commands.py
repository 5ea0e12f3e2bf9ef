"""The table of commands: what was typed is read, and of all else only what the help says."""

from typing import Any

import pytest
from typer.main import get_command

from aaiclick.cli import app_for, whole_app
from aaiclick.cli.commands import COMMANDS, NOUNS
from tests.cli.conftest import Cli
from tests.cli.test_cli import commands


def test_only_what_could_be_meant_is_read(cli: Cli) -> None:
    whole: Any = get_command(whole_app())
    narrow: Any = get_command(app_for(["--debug", "job", "list", "--like", "worker"]))
    assert list(narrow.commands) == list(whole.commands)
    assert {name: list(each.commands) for name, each in narrow.commands.items() if getattr(each, "commands", None)} == {
        "job": ["list"]
    }
    for typed in (["job"], ["job", "--help"], ["job", "--help", "list"], ["job", "lst"]):
        assert verbs_of_job(typed) == list(whole.commands["job"].commands)
    assert verbs_of_job(["job", "logs"]) == ["logs"]
    assert "Did you mean 'worker'?" in cli("workr", "list").err
    assert "Did you mean 'logs'?" in cli("job", "logz").err


def verbs_of_job(typed: list[str]) -> list[str]:
    narrow: Any = get_command(app_for(typed))
    return list(narrow.commands["job"].commands)


def test_help_says_of_a_command_that_was_not_typed_what_its_own_does(cli: Cli) -> None:
    whole: Any = get_command(whole_app())
    narrow: Any = get_command(app_for(["--help"]))
    for name, each in whole.commands.items():
        assert narrow.commands[name].help == " ".join(each.help.partition("\n\n")[0].split())
        for width in (40, 80, 200):
            assert narrow.commands[name].get_short_help_str(width) == each.get_short_help_str(width)


def test_the_help_of_each_command_is_that_of_the_whole(cli: Cli) -> None:
    whole: Any = get_command(whole_app())
    for path in commands(whole):
        command, context = whole, None
        for name in ("aaiclick", *path):
            command = whole if context is None else command.commands[name]
            context = command.make_context(name, [], parent=context, resilient_parsing=True)
        assert cli(*path, "--help").out.rstrip("\n") == command.get_help(context).rstrip("\n")


@pytest.mark.parametrize("name", [*COMMANDS, *NOUNS])
def test_each_is_read_when_it_is_typed(name: str) -> None:
    whole: Any = get_command(whole_app())
    typed: Any = get_command(app_for([name]))
    of_whole, of_typed = whole.commands[name], typed.commands[name]
    assert of_typed.help == of_whole.help
    assert [each.name for each in of_typed.params] == [each.name for each in of_whole.params]
    assert list(getattr(of_typed, "commands", ())) == list(getattr(of_whole, "commands", ()))
