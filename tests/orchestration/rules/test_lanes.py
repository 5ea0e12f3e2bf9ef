"""The text of what a task needs."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.rules.lanes import canonical


def test_the_same_needs_are_the_same_text() -> None:
    assert canonical({"gpu": 1, "labels": {"b": 2, "a": "é"}}) == canonical({"labels": {"a": "é", "b": 2}, "gpu": 1})
    assert canonical({"gpu": 1}) == '{"gpu":1}'
    assert len({canonical(needs) for needs in ({"gpu": 1}, {"gpu": "1"}, {"gpu": [1]}, {"gpu": True}, {})}) == 5


def test_what_is_no_json_is_refused() -> None:
    for needs in ({"memory_gb": float("nan")}, {"labels": {"a", "b"}}):
        with pytest.raises((ValueError, TypeError)):
            canonical(needs)
