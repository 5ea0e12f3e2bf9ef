"""What tasks expected of their data and did not find, as `job get` and `task get` show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aaiclick.cli.output import printable, show_text

if TYPE_CHECKING:
    from aaiclick.orchestration.expectations import Unmet


def show_unmet(found: Sequence[Unmet]) -> None:
    """A line for each."""
    for each in found:
        show_text(f"expectation {each.outcome} (task {each.task_id}): {printable(each.line)}")
