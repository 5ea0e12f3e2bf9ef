"""Whom and what a task may wait for; what is told of them is tried in `test_pending`."""

from aaiclick.orchestration.rules import pending, waiting


def test_they_are_known_by_the_module_that_tells_of_them() -> None:
    assert (pending.Blocker, pending.Fleet, pending.Holder) == (waiting.Blocker, waiting.Fleet, waiting.Holder)
    assert waiting.Holder(7).is_live is False
    assert waiting.Fleet() == waiting.Fleet(live=0, draining=0, full=0, slots=0, taken=0)
