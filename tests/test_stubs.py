"""What type checkers are told is what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import col
from aaiclick.data.operations import AGGREGATES, FUNCTIONS, WINDOWS
from aaiclick.stubs import STUBS

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize("module", STUBS)
def test_a_stub_is_up_to_date(module: str) -> None:
    path, make = STUBS[module]
    assert (PROJECT / path).read_text() == make(), f"run: python -m aaiclick.stubs {module} > {path}"


def test_the_methods_that_are_told_are_there() -> None:
    told = STUBS["aaiclick.data.methods"][1]()
    for name, operation in {**FUNCTIONS, **AGGREGATES, **WINDOWS}.items():
        assert (f"    def {name}(" in told) == bool(operation.most), "row_number() and rank() stand alone"
        assert callable(getattr(col("a"), name))
