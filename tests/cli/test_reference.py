"""The page of the manual with all commands."""

from pathlib import Path

from typer.main import get_command

from aaiclick.cli import whole_app
from aaiclick.cli.reference import cli_markdown
from tests.cli.test_cli import commands

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"


def test_the_page_of_the_manual_is_up_to_date() -> None:
    assert PAGE.read_text() == cli_markdown(), "run: python -m aaiclick.cli.reference > docs/reference/cli.md"


def test_every_command_is_on_it() -> None:
    page = cli_markdown()
    for path in commands(get_command(whole_app())):
        assert f"## {' '.join(('aaiclick', *path))}\n" in page


def test_every_command_and_every_option_says_what_it_does() -> None:
    for line in cli_markdown().splitlines():
        assert not line.endswith("|  |"), line
