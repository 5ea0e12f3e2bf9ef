"""The package's own face: names are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import aaiclick.orchestration as front


@pytest.mark.parametrize("name", front.__all__)
def test_every_listed_name_is_there(name: str) -> None:
    assert getattr(front, name) is not None
    assert name in dir(front)


def test_a_star_import_brings_all_of_them() -> None:
    names: dict[str, object] = {}
    exec("from aaiclick.orchestration import *", names)  # noqa: S102 (as a user writes it)
    assert set(front.__all__) <= names.keys()


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"aaiclick\.orchestration.*create_jub"):
        front.create_jub  # type: ignore[attr-defined]  # noqa: B018


def test_a_name_is_the_same_object_as_in_its_module() -> None:
    from aaiclick.orchestration.decorators import task
    from aaiclick.orchestration.models import Task

    assert front.task is task
    assert front.Task is Task


@pytest.mark.parametrize(
    "statement",
    [
        "from aaiclick.orchestration import orch_context",
        "from aaiclick.orchestration import task, orch_context",
        "from aaiclick.orchestration import job_test, orch_context",
        "import aaiclick.orchestration.context; from aaiclick.orchestration import orch_context",
        "from aaiclick.orchestration import *",
    ],
)
def test_orch_context_is_the_function_whatever_was_imported_before(statement: str) -> None:
    code = f"{statement}\nprint(type(orch_context(5)).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "Context", done.stderr
