"""The Python blocks of a page, pasted one after the other into a file, are a program that runs.

A reader of a page copies its Python and leaves the commands out. Where a page has none, `test_snippets` runs that very
script; here are the others.
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

from tests.support.pages import PAGES, blocks_of, pages_with, pasted, run_script, title

Finished = dict[Path, Future[subprocess.CompletedProcess[str]]]

BOTH = sorted({*pages_with("python")} & {*pages_with("bash")})


@pytest.fixture(scope="module")
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """The scripts of all pages that are asked for, run side by side."""
    parameters: list[dict[str, Any]] = [
        item.callspec.params for item in request.session.items if hasattr(item, "callspec")
    ]
    asked = [given["pasted_page"] for given in parameters if "pasted_page" in given]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = tmp_path_factory.mktemp
        yield {page: pool.submit(run_script, pasted(blocks_of(page)), folder("page")) for page in asked}


@pytest.mark.parametrize("pasted_page", BOTH, ids=title)
def test_the_python_of_a_page_runs_without_its_commands(pasted_page: Path, finished: Finished) -> None:
    done = finished[pasted_page].result()
    assert done.returncode == 0, f"{title(pasted_page)}: pasted into a file, its blocks fail\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_python_stands_in_fences_that_are_run(page: Path) -> None:
    fences = re.findall(r"^[ \t]*(?:```|~~~)[ \t]*\{?\.?py.*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*fences} <= {"```python"}
