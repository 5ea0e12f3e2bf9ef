"""Functions of a script that is run directly: named by the script's own module, and not imported twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import aaiclick
from tests.support import warm

ROOT = Path(aaiclick.__path__[0]).parent


def run(*args: str, cwd: Path, stdin: str | None = None) -> str:
    done = warm.run(
        [sys.executable, *args],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SCRIPT = """
from aaiclick.errors import EntrypointError
from aaiclick.orchestration.submitting.entrypoints import entrypoint_of, importing, resolve

def f(): ...

print("ran")
try:
    name = entrypoint_of(f)
    print(name, resolve(name) is f)
except EntrypointError as error:
    print(error)
"""


def test_a_scripts_function_is_named_by_the_script_and_not_imported_again(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(SCRIPT)
    assert run("flow.py", cwd=tmp_path) == "ran\nflow.f True"
    assert run(str(tmp_path / "flow.py"), cwd=ROOT) == "ran\nflow.f True"
    assert run("-m", "flow", cwd=tmp_path) == "ran\nflow.f True"


def test_a_module_of_a_package_keeps_its_full_name(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/flow.py").write_text(SCRIPT)
    (tmp_path / "pkg/__main__.py").write_text(SCRIPT)
    assert run("-m", "pkg.flow", cwd=tmp_path) == "ran\npkg.flow.f True"
    assert run("-m", "pkg", cwd=tmp_path) == "ran\npkg.__main__.f True"


def test_another_process_finds_a_scripts_function_in_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("def f(): return 5")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/worker.py").write_text(
        "from aaiclick.orchestration.submitting.entrypoints import resolve\nprint(resolve('flow.f')())"
    )
    assert run("elsewhere/worker.py", cwd=tmp_path) == "5"


@pytest.mark.parametrize("name", ["my-flow.py", "2024.py", "class.py", "flow", "json.py"])
def test_a_script_that_cannot_be_imported_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "scripts").mkdir()
    script = f"import sys; sys.path.append(sys.path.pop(0))\nimport json\n{SCRIPT}"
    (tmp_path / "scripts" / name).write_text(script)
    said = run(f"scripts/{name}", cwd=tmp_path)
    assert "Rename the script" in said
    assert said.startswith("ran\n__main__.f cannot be run")


def test_a_directory_run_as_a_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow/__main__.py").write_text(SCRIPT)
    assert "Rename the script" in run("flow", cwd=tmp_path)


def test_there_is_no_entrypoint_without_a_file(tmp_path: Path) -> None:
    assert "interactive session" in run("-c", SCRIPT, cwd=tmp_path)
    assert "interactive session" in run("-", cwd=tmp_path, stdin=SCRIPT)
