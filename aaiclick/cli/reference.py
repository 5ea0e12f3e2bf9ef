"""The page of the manual with all commands, made from the commands themselves.

The page is written anew by: python -m aaiclick.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from aaiclick.cli import whole_app

HEAD = """# Command line

Generated from the commands themselves: `aaiclick COMMAND --help` says the same. `aaiclick` and `python -m aaiclick` are
the same command. See [Using the command line](../guides/command-line.md) for examples, and for how ids are shortened,
what `--json` and `--watch` print, and what is escaped on a terminal.

## Exit codes

| code | means |
|---|---|
| 0 | success |
| 1 | `job wait`, `run-job --wait`: the job did not complete; `doctor`: a check fails |
| 2 | wrong use: an argument, a setting, a schema that does not fit, an ambiguous id, a query that is refused |
| 3 | not found |
| 4 | not allowed |
| 5 | conflict: a job that ended is cancelled, a task that did not fail is retried |
| 6 | the database or the data engine cannot be reached or used |
| 70 | a bug in aaiclick |
| 74 | the output cannot be written, as on a full disk |
| 124 | the wait timed out |
| 130 | interrupted, or answered with no |
| 141 | the reader of the output has closed it |
"""


def cli_markdown() -> str:
    """The page docs/reference/cli.md."""
    root = get_command(whole_app())
    lines = [HEAD, "## Commands", *_index("aaiclick", root), "", *_command("aaiclick", root)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _index(path: str, command: Any) -> Iterator[str]:
    yield ""
    yield "| command | does |"
    yield "|---|---|"
    for name, each in _below(path, command):
        if not getattr(each, "commands", None):
            yield f"| `{name}` | {_escaped(_first_sentence(each.help))} |"


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all that is under it."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", each)


def _command(path: str, root: Any) -> Iterator[str]:
    for name, command in _below(path, root):
        yield f"## {name}" if getattr(command, "commands", None) else f"### {name}"
        yield ""
        yield f"`{' '.join([name, *_shape(command)])}`"
        yield ""
        yield " ".join((command.help or "").split())
        rows = [_row(each) for each in command.params]
        if rows:
            yield ""
            yield "| argument or option | means |"
            yield "|---|---|"
            yield from rows
        yield ""


def _shape(command: Any) -> Iterator[str]:
    if any(each.param_type_name == "option" for each in command.params):
        yield "[OPTIONS]"
    for each in command.params:
        if each.param_type_name == "argument":
            yield _argument(each) if each.required else f"[{_argument(each)}]"
    if getattr(command, "commands", None):
        yield "COMMAND"


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"| `{_argument(parameter)}` | {_escaped(parameter.help or '')} |"
    names = [*parameter.opts, *parameter.secondary_opts]
    value = "" if parameter.is_flag else f" {_argument(parameter)}"
    words = [parameter.help or ""]
    if parameter.required:
        words.append("Required.")
    elif _is_told(parameter.default):
        words.append(f"By default {parameter.default}.")
    return f"| {', '.join(f'`{name}{value}`' for name in names)} | {_escaped(' '.join(filter(None, words)))} |"


def _is_told(default: object) -> bool:
    return isinstance(default, str | int | float) and not isinstance(default, bool)  # a flag's is plain


def _first_sentence(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words.partition(". ")[0].rstrip(".") if ". " in words else words.rstrip(".")


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    sys.stdout.write(cli_markdown())
