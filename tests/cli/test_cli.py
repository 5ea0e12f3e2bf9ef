"""The command itself: what it loads, what it is called, and how it is started."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import aaiclick
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]

MAY_LOAD = {"aaiclick", "annotated_doc", "click", "colorama", "shellingham", "typer"}
"""Packages outside the standard library that `aaiclick --help` may load: a parser, and nothing that works."""

SLOW = {"asyncio", "email", "importlib.metadata", "logging", "multiprocessing", "sqlite3", "ssl", "unittest"}
"""Of the standard library."""

HELP = """
import sys
before = set(sys.modules)
sys.argv = ["aaiclick", "--help"]
from aaiclick.cli import main
try:
    main()
finally:
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def start(*command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=60)


def test_help_loads_nothing_heavy() -> None:
    done = start("-c", HELP)
    assert done.returncode == 0
    loaded = set(done.stderr.split())
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert packages <= MAY_LOAD
    assert not loaded & SLOW
    assert not [name for name in loaded if name.startswith(("aaiclick.orchestration", "aaiclick.config"))]


def test_python_m_is_the_same_command(cli: Cli) -> None:
    done = start("-m", "aaiclick", "job", "frobnicate")
    assert (done.returncode, done.stdout, done.stderr) == cli("job", "frobnicate")


def test_the_console_script_is_main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["aaiclick"] == "aaiclick.cli:main"
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
