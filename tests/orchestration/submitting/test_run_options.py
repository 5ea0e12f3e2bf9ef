"""The options of one run, and what of them a key covers."""

from __future__ import annotations

from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.submitting.run_options import RunOptions


def test_a_key_covers_the_given_options_in_one_form() -> None:
    made = new_job("x", preservation_mode="full", cache_mode="off")
    asked = RunOptions("FULL", "key", 5, 9, "off").asked(made)
    assert asked == [5, 9.0, "full", "off"]
    assert RunOptions(key="key").asked(made) == [None, None, None], "without the option, the digest is as before"
