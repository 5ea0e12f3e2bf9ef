"""The pages of documentation, their blocks, and how a script made of them is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import warm

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

NAME = "mine.py"
"""What a reader calls the file is up to them."""

BETWEEN = '''\
"""What happens between the blocks of a page: a command is run, and a mark is printed where a block ends."""

import asyncio
import re
import shlex
import subprocess
import sys

CODE = '; echo "exit code $?"'


def end_of_block(number):
    print(f"\\x1e{number}", flush=True)


def run(command):
    from aaiclick.orchestration import list_jobs

    if re.search(r"\\b\\d{17,19}\\b", command):
        newest = str(asyncio.run(list_jobs(limit=1))[0].id)
        command = re.sub(r"\\b\\d{17,19}\\b", newest, command)
    warm = sys.modules.get("_warm")  # see tests.support.warm
    plain = command.removesuffix(CODE)
    if warm is not None and not re.search(r"[^-\\w './:=@,%]", plain):
        done = warm.run([sys.executable, "-m", *shlex.split(plain)], stderr=subprocess.STDOUT)
        if plain != command:
            print(f"exit code {done.returncode}", flush=True)
            return
    else:
        done = subprocess.run(["bash", "-c", command], stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}")
'''
"""A module beside the script: nothing of it is among the names of the page."""


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


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def pages_with(*kinds: str) -> list[Path]:
    """The pages that have a block of one of these kinds."""
    fence = re.compile(rf"^```({'|'.join(kinds)})$", re.MULTILINE)
    return [page for page in PAGES if fence.search(page.read_text(encoding="utf-8"))]


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


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    blocks = [block for block in read_blocks(page.read_text(encoding="utf-8")) if block.is_run]
    for block in blocks:
        assert block.kind == "python" or block.text.startswith("aaiclick "), f"{title(page)}:{block.line}: write ```sh"
    return blocks


def script_of(blocks: list[Block]) -> str:
    """The blocks from top to bottom, the commands at their places."""
    parts = []
    for number, block in enumerate(blocks):
        command = f"__import__('between').run({block.text.strip()!r})"
        parts.append(block.text if block.kind == "python" else command)
        parts.append(f"__import__('between').end_of_block({number})")
    return "\n".join(parts)


def pasted(blocks: list[Block]) -> str:
    """The Python blocks alone, one after the other, as a reader puts them into a file."""
    return "\n".join(block.text for block in blocks if block.kind == "python")


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a directory and a local root of its own, where `aaiclick` is a command."""
    place, commands = folder / "place", folder / "bin"
    place.mkdir()
    commands.mkdir()
    (place / NAME).write_text(script, encoding="utf-8")
    (commands / "between.py").write_text(BETWEEN, encoding="utf-8")
    command = commands / "aaiclick"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aaiclick "$@"\n', encoding="utf-8")
    command.chmod(0o700)
    surroundings = os.environ | {
        "AAICLICK_LOCAL_ROOT": str(folder / "root"),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{commands}",
        "PYTHONIOENCODING": "utf-8",
    }
    return warm.run(
        [sys.executable, "-u", NAME],
        cwd=place,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
