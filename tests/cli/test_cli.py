"""The command itself: what it loads, what it is called, and how it is started."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import aaiclick
from aaiclick.cli import whole_app
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]

MAY_LOAD = {"aaiclick", "annotated_doc", "click", "colorama", "shellingham", "typer"}
"""Packages outside the standard library that `aaiclick --help` may load: a parser, and nothing that works."""

SLOW = {"asyncio", "email", "importlib.metadata", "logging", "multiprocessing", "sqlite3", "ssl", "unittest"}
"""Of the standard library."""

HELP = """
import sys
before = set(sys.modules)
from aaiclick.cli import main
for typed in {commands!r}:
    sys.argv = ["aaiclick", *typed, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """A command and all that is under it, as they are typed."""
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, *path, name)


def start(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("which", ["its own", "that of every command"])
def test_help_loads_nothing_heavy(which: str) -> None:
    asked = [()] if which == "its own" else list(commands(get_command(whole_app())))
    done = start("-c", HELP.format(commands=asked))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--help") >= len(asked)
    loaded = set(done.stderr.split())
    packages = {name.partition(".")[0] for name in loaded if not name.startswith("_")} - sys.stdlib_module_names
    assert packages <= MAY_LOAD
    assert not loaded & SLOW or which != "its own"
    rooms = ("aaiclick.orchestration", "aaiclick.config", "aaiclick.data", "aaiclick.server")
    assert not [name for name in loaded if name.startswith(rooms)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_needs_no_database(shell: str) -> None:
    """What the shell asks when the tab key is pressed; loading no library that works."""
    asked = {
        "_AAICLICK_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "aaiclick job w",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": "aaiclick job w",
        "COMP_CWORD": "2",
        "AAICLICK_SQL_URL": "postgresql://127.0.0.1:1/nothing",
    }
    done = start("-m", "aaiclick", **asked)
    assert done.stderr == ""
    assert "wait" in done.stdout
    assert "cancel" not in done.stdout


def test_every_command_that_prints_has_json() -> None:
    without = {"aaiclick", "worker start", "background start", "data serve", "server start"}
    whole: Any = get_command(whole_app())
    for path in commands(whole):
        command = whole
        for name in path:
            command = command.commands[name]
        is_group = bool(getattr(command, "commands", None))
        if not is_group and " ".join(path) not in without:
            assert any("--json" in each.opts for each in command.params), path


def test_python_m_is_the_same_command(cli: Cli) -> None:
    done = start("-m", "aaiclick", "job", "frobnicate")
    assert (done.returncode, done.stdout, done.stderr) == cli("job", "frobnicate")


def test_the_console_script_is_main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["aaiclick"] == "aaiclick.__main__:main"
    assert project["version"] == aaiclick.__version__


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"aaiclick {aaiclick.__version__}\n", "")


def test_alone_it_shows_its_help(cli: Cli) -> None:
    alone = cli()
    assert alone == cli("--help") == cli("-h")
    assert alone.code == 0
    assert all(noun in alone.out for noun in ("setup", "migrate", "job"))


def test_importing_the_package_loads_nothing_else() -> None:
    done = start("-c", "import sys, aaiclick; sys.exit(any(name.startswith('aaiclick.') for name in sys.modules))")
    assert done.returncode == 0


LOADED = """
import sys
before = set(sys.modules)
sys.argv = {typed!r}
from aaiclick.__main__ import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("loaded", *sorted(set(sys.modules) - before), file=sys.stderr)
"""
STATE = {"greenlet", "sqlalchemy", "typing_extensions"}
"""What a look at the state needs besides."""
HELP_MODULES_MAX = 135
LIST_MODULES_MAX = 464


def loaded_by(*typed: str) -> list[str]:
    """The modules that are loaded when a command has ended, beside those that Python begins with."""
    done = start("-c", LOADED.format(typed=["aaiclick", *typed]))
    assert done.returncode == 0, done.stderr
    return done.stderr.partition("loaded ")[2].split()


def test_help_loads_few_modules_and_no_command() -> None:
    loaded = loaded_by("--help")
    assert {name for name in loaded if name.startswith("aaiclick.cli.")} <= {
        *("aaiclick.cli.afar", "aaiclick.cli.commands", "aaiclick.cli.errors", "aaiclick.cli.output")
    }
    assert len(loaded) <= HELP_MODULES_MAX


def test_a_list_of_jobs_loads_the_state_and_nothing_else(cli: Cli) -> None:
    assert cli("job", "list").code == 0  # makes the database, which takes more
    loaded = loaded_by("job", "list")
    packages = {name.partition(".")[0] for name in loaded if not name.startswith("_")} - sys.stdlib_module_names
    assert packages <= MAY_LOAD | STATE | {"cython_runtime"}
    unneeded = ("aaiclick.data", "aaiclick.orchestration.bus", "aaiclick.orchestration.coordinator.direct", "alembic")
    assert not [name for name in loaded if name.startswith(unneeded)]
    assert len(loaded) <= LIST_MODULES_MAX
