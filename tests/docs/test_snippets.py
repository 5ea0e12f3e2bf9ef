"""The documentation is run: every Python block, every `aaiclick` command, and the output that is shown for them.

The blocks of a page are one script, `flow.py`, run from top to bottom in a directory and a local root of its own:

- ```python is code. ```bash is a command that begins with `aaiclick`; a job id in it stands for the newest job's.
- ```text is what the block before it prints. `…` stands for anything within a line, on a line of its own for any lines.
- Other blocks (```sh, ```sql, …) are not run.

Also: links lead somewhere, and the pages of reference name all that there is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import aaiclick.data as data_door
import aaiclick.orchestration as front_door
from aaiclick import errors
from aaiclick.cli import app
from aaiclick.data.operations import AGGREGATES
from aaiclick.orchestration.store.tables import metadata

Finished = dict[Path, Future[subprocess.CompletedProcess[str]]]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

# What the script of a page begins with: a way to run a command at its place between the blocks.
PREAMBLE = """\
def _end_of_block(number):
    print(f"\\x1e{number}", flush=True)

def _run(command):
    import asyncio, re, subprocess, sys
    from aaiclick.orchestration import list_jobs
    if re.search(r"\\b\\d{17,19}\\b", command):
        newest = str(asyncio.run(list_jobs(limit=1))[0].id)
        command = re.sub(r"\\b\\d{17,19}\\b", newest, command)
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}")
"""


@dataclass
class Block:
    """A fenced block, and the output that is shown after it."""

    kind: str
    text: str
    line: int
    shown: list[str] = field(default_factory=list)

    @property
    def is_run(self) -> bool:
        return self.kind in ("python", "bash")


def read_blocks(text: str) -> list[Block]:
    """The fenced blocks of a page; a ```text belongs to the block before it."""
    blocks: list[Block] = []
    for found in re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] == "text":
            assert blocks, f"line {line}: a text block shows what the block before it prints, and there is none"
            assert blocks[-1].is_run, f"line {line}: the block before this text block is not run"
            blocks[-1].shown.append(found[2])
        else:
            blocks.append(Block(found[1], found[2], line))
    return blocks


def script_of(blocks: list[Block]) -> str:
    parts = [PREAMBLE]
    for number, block in enumerate(blocks):
        parts.append(block.text if block.kind == "python" else f"_run({block.text.strip()!r})")
        parts.append(f"_end_of_block({number})")
    return "\n".join(parts)


def pattern_of(shown: str) -> str:
    """A regular expression for output: blanks count as one, `…` as anything."""
    lines = [" ".join(line.split()) for line in shown.strip().splitlines()]
    return "".join("(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in lines)


def squeezed(text: str) -> str:
    return "".join(" ".join(line.split()) + "\n" for line in text.strip().splitlines())


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def pages_that_run() -> list[Path]:
    return [page for page in PAGES if re.search("^```(python|bash)$", page.read_text(encoding="utf-8"), re.MULTILINE)]


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


@pytest.mark.parametrize("run_page", pages_that_run(), ids=title)
def test_the_blocks_of_a_page_run_and_print_what_is_shown(run_page: Path, finished: Finished) -> None:
    blocks, done = blocks_of(run_page), finished[run_page].result()
    *printed, last = re.split("\x1e\\d+\n", done.stdout)
    at = blocks[min(len(printed), len(blocks) - 1)].line
    assert done.returncode == 0, f"{title(run_page)}:{at}: the block failed\n{last}"
    for block, output in zip(blocks, printed, strict=True):
        if block.shown:
            same = re.fullmatch("".join(map(pattern_of, block.shown)), squeezed(output))
            assert same, f"{title(run_page)}:{block.line}: the block prints\n{output}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    blocks = [block for block in read_blocks(page.read_text(encoding="utf-8")) if block.is_run]
    for block in blocks:
        assert block.kind == "python" or block.text.startswith("aaiclick "), f"{title(page)}:{block.line}: write ```sh"
    return blocks


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "flow.py").write_text(script, encoding="utf-8")
    (folder / "bin").mkdir()
    command = folder / "bin" / "aaiclick"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aaiclick "$@"\n', encoding="utf-8")
    command.chmod(0o700)
    surroundings = os.environ | {
        "AAICLICK_LOCAL_ROOT": str(folder / "root"),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
    }
    return subprocess.run(
        [sys.executable, "-u", "flow.py"],
        cwd=folder,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )


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
    missing = [part for part in command_parts("aaiclick", get_command(app)) if f"`{part}" not in text]
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
