"""The version of a function's code changes with the code, and with nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from aaiclick.orchestration import task
from aaiclick.orchestration.execution.runs.code_versions import code_version

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports a module with this text anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(text: str) -> ModuleType:
        sys.modules.pop("versioned", None)
        (tmp_path / "versioned.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("versioned")

    yield imported
    sys.modules.pop("versioned", None)


PLAIN = "def f(x, y={1, 2}):\n    def inner(z):\n        return z in {'a', 'b'}\n    return inner(x)\n"


def version(module: ModuleType) -> str | None:
    return code_version(module.f)


def test_layout_comments_and_decorators_do_not_count(load: Load) -> None:
    first = version(load(PLAIN))
    assert first is not None
    assert (
        version(load("\n\n# more\n" + PLAIN.replace("    return inner(x)", "\n    # why\n    return inner( x )")))
        == first
    )
    wrapped = "import functools\ndef d(g):\n    return functools.wraps(g)(lambda *a: g(*a))\n@d\n" + PLAIN
    assert version(load(wrapped)) == first


@pytest.mark.parametrize(
    ("old", "new"), [("{1, 2}", "{1, 3}"), ("{'a', 'b'}", "{'a', 'c'}"), ("return inner(x)", "return not inner(x)")]
)
def test_every_change_of_the_code_counts(load: Load, old: str, new: str) -> None:
    assert version(load(PLAIN)) != version(load(PLAIN.replace(old, new)))


def test_helpers_are_not_seen(load: Load) -> None:
    calling = "def f(x):\n    return helper(x)\n"
    versions = {version(load(calling + f"def helper(x):\n    return x + {by}\n")) for by in (1, 2)}
    assert len(versions) == 1


def test_a_file_that_changed_since_it_was_imported_is_not_taken_for_what_runs(load: Load, tmp_path: Path) -> None:
    old = load(PLAIN)
    (tmp_path / "versioned.py").write_text(PLAIN.replace("{1, 2}", "{1, 3}").replace("'b'", "'c'"))
    stale = version(old)
    assert stale != version(load(PLAIN.replace("{1, 2}", "{1, 3}").replace("'b'", "'c'")))


def test_what_has_no_source_has_no_version() -> None:
    names: dict[str, Callable[[int], int]] = {}
    exec("def f(x):\n    return x", names)  # noqa: S102 (a function without a file)
    assert code_version(names["f"]) is None
    assert code_version(len) is None


def test_a_marked_function_has_that_of_its_own() -> None:
    def body(x: int) -> int:
        return x

    assert code_version(task(body).function) == code_version(body)
