"""The application of whoever reads the specification: `myapp`, with the functions that its snippets name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["myapp"]

MYAPP = {
    "__init__.py": """
def func1(**kwargs): return "func1"
def func2(**kwargs): return "func2"
def extract(**kwargs): return "extract"
def transform(**kwargs): return "transform"
def load(**kwargs): return "load"
def validate(**kwargs): return "validate"
def report(**kwargs): return "report"
def process(data): return data
""",
    "processors.py": """
async def load_and_process_data(source="dataset_v0"):
    return f"loaded {source}"
async def process_data(input=None):
    return input
""",
    "module.py": "def function(): return 'called'\n",
}


@pytest.fixture
def myapp(tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reader's application, and a local root of the test's own."""
    (tmp_path / "app/myapp").mkdir(parents=True)
    for name, text in MYAPP.items():
        (tmp_path / "app/myapp" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "app"))
    yield tmp_path / "app"
    for name in [name for name in sys.modules if name.partition(".")[0] == "myapp"]:
        del sys.modules[name]
