"""What tasks expected of their data and did not find, as `job get` and `task get` show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aaiclick.cli.output import printable, show_text

if TYPE_CHECKING:
    from aaiclick.representations.expectations import UnmetAnswer


def show_unmet(found: Iterable[UnmetAnswer]) -> None:
    """Print a line for each unmet expectation."""
    for each in found:
        show_text(f"expectation {each['outcome']} (task {each['task_id']}): {printable(each['line'])}")
