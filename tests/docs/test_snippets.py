"""The documentation is run: every Python block, every `aaiclick` command, and the output that is shown for them.

The blocks of a page are one script, run from top to bottom in a directory and a local root of its own. Nothing is put
in front of them: what a page uses, it imports.

- ```python is code. ```bash is a command that begins with `aaiclick`; a job id in it stands for the newest job's.
- ```text is what the block before it prints. `…` stands for anything within a line, on a line of its own for any lines.
- Other blocks (```sh, ```sql, …) are not run.

Also: links lead somewhere, and the pages of reference name all that there is.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import aaiclick.data as data_door
import aaiclick.orchestration as front_door
from aaiclick import errors
from aaiclick.cli import whole_app
from aaiclick.data.operations import AGGREGATES
from aaiclick.orchestration.store.tables import metadata
from tests.support.pages import DOCS, PAGES, ROOT, blocks_of, pages_with, run_script, script_of, title

Finished = dict[Path, Future[subprocess.CompletedProcess[str]]]


def pattern_of(shown: str) -> str:
    """A regular expression for output: blanks count as one, `…` as anything."""
    lines = [" ".join(line.split()) for line in shown.strip().splitlines()]
    return "".join("(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in lines)


def squeezed(text: str) -> str:
    return "".join(" ".join(line.split()) + "\n" for line in text.strip().splitlines())


@pytest.fixture(scope="module")
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """The scripts of all pages that are asked for, run side by side."""
    parameters: list[dict[str, Any]] = [
        item.callspec.params for item in request.session.items if hasattr(item, "callspec")
    ]
    asked = [given["run_page"] for given in parameters if "run_page" in given]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = tmp_path_factory.mktemp
        yield {page: pool.submit(run_script, script_of(blocks_of(page)), folder("page")) for page in asked}


@pytest.mark.parametrize("run_page", pages_with("python", "bash"), ids=title)
def test_the_blocks_of_a_page_run_and_print_what_is_shown(run_page: Path, finished: Finished) -> None:
    blocks, done = blocks_of(run_page), finished[run_page].result()
    *printed, last = re.split("\x1e\\d+\n", done.stdout)
    at = blocks[min(len(printed), len(blocks) - 1)].line
    assert done.returncode == 0, f"{title(run_page)}:{at}: the block failed\n{last}"
    for block, output in zip(blocks, printed, strict=True):
        if block.shown:
            same = re.fullmatch("".join(map(pattern_of, block.shown)), squeezed(output))
            assert same, f"{title(run_page)}:{block.line}: the block prints\n{output}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a  b\n", "a b\n", True),
        ("a b\n", "a c\n", False),
        ("job … done\n", "job 5 done\n", True),
        ("job … done\n", "job 5 failed\n", False),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nb\nc\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_shown_output_is_compared_line_by_line(shown: str, printed: str, same: bool) -> None:
    assert bool(re.fullmatch(pattern_of(shown), squeezed(printed))) is same


# ---------------------------------------------------------------- links


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and mkdocs make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)) or leaves_docs(page, target):
            broken.append(link)
    assert not broken


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", without_blocks(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {slug(heading) for heading in headings}


def leaves_docs(page: Path, target: Path) -> bool:
    """The site is made of docs/ alone: from there no link may lead out."""
    return DOCS in page.parents and DOCS not in target.parents


def test_the_site_lists_every_page_once() -> None:
    listed = re.findall(r"^ *- .*?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


# ---------------------------------------------------------------- reference pages name all that there is


def named_in(page: str) -> set[str]:
    """What the page names in code style, and the words of longer pieces of code."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}


def test_the_api_page_names_every_public_name() -> None:
    assert set(front_door.__all__) - named_in("api.md") == set()


def test_the_data_page_names_every_public_name_and_every_operation() -> None:
    named = named_in("data.md")
    assert set(data_door.__all__) - named == set()
    assert {name for name in AGGREGATES if name not in named} == set()


def test_the_errors_page_names_every_error_with_its_exit_code() -> None:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds: list[type[errors.AaiclickError]] = [
        errors.TaskTimeout,
        *(kind for kind in found if issubclass(kind, errors.AaiclickError)),
    ]
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = {f"| `{kind.__name__}` | {kind.exit_code} |" for kind in kinds}
    assert {row for row in rows if row not in text} == set()


def test_the_cli_page_names_every_command_and_option() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    missing = [part for part in command_parts("aaiclick", get_command(whole_app())) if f"`{part}" not in text]
    assert not missing


def command_parts(path: str, command: Any) -> Iterator[str]:
    """A command with all that is below it, and the options of each."""
    for option in command.params:
        yield from (name for name in option.opts if name.startswith("--") and "completion" not in name)
    below = getattr(command, "commands", {})
    if not below:
        yield path
    for name, step in below.items():
        yield from command_parts(f"{path} {name}", step)


def test_the_tables_page_names_every_table_and_column() -> None:
    names = named_in("tables.md")
    assert set(metadata.tables) - names == set()
    columns = {column.name for table in metadata.tables.values() for column in table.columns}
    assert columns - names == set()
